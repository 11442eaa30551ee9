// Package natsstore keeps pools in NATS JetStream, in a key-value bucket with one
// key per pool. It needs nothing but compare-and-set, on NATS server 2.9 and
// later, standalone or clustered, with any number of replicas.
//
// # One sync
//
// The record of a pool is one value (see driver.Record). A sync reads the
// stream's information and then the pool's entry, both from the stream's leader,
// never from a replica or a cache; applies Record.Sync; and writes the value back
// on condition that nobody else has written since. If somebody has, it waits for
// a random moment and reads the entry again. That is three messages to the server, one
// after the other, when nobody interferes, two more for each further try, and one at
// the end of all tries: the stream's information again, because the bucket must not have
// changed since the first try.
// Syncs of one Store on one pool take turns instead of competing. A request that changes nothing (a
// repeat, or one that is refused) is answered without a write: what it is answered
// with was recorded before.
//
// In a cluster no server answers a read while the cluster as a whole has no leader, even
// if the stream has one and takes writes: where one server led both, the pool waits for two elections.
//
// A write acknowledgement carries no time, so the server's time of a step is read
// back with the entry by the next one (driver.At.Deferred). The time of a saved
// document passes for that of the step before, so that a pool which nobody is in has
// slept since then at most. A write that is
// not acknowledged in time may have been done, or be done later: Sync returns an
// error, and the sequence numbers of the next request make it harmless.
//
// # Permits
//
// The time of a reservation is that of its write, which the reserver reads back, together
// with the stream's information, which tells whether the stream has the same leader as
// before the write. If others have written since, the record tells what came of it, as long
// as it is one of the newest sixteen. A Store that seems to be alone in reserving keeps
// what it has read back, and writes upon that the next time.
//
// # News
//
// News of pauses go over core NATS, to a subject of the bucket below push, under which no key
// is. The bucket is told to refuse them, so that nothing of them is kept and nothing comes
// between the writes of records; whoever is connected hears them, also while the bucket has no leader.
// There is no consumer for them: from 2.15 on a stream has a thousand at most.
//
// # How many processors
//
// All processors of a pool write one value. This is good for about a hundred
// processors in a pool with one sync per second each, at round trips of up to
// five milliseconds; syncs are not combined. docs/operations.md has what was measured with
// more. When requests lose to others too often, intervals stretch as they do with any slow
// store. A processor that joins gives up after a quarter of its time, and does not try
// while one in a hundred holders of shares is overdue (driver.Record.HoldersWait), so that holders win.
// The server is that of the connection: JetStream domains are not supported.
//
// # Identity
//
// The identity of the server is the creation time of the stream and the name of
// the server that leads it. A bucket that was deleted or lost, and a new leader,
// therefore freeze the pools in it for one removal time of the longest lease. A
// standalone server of version 2.9.10 tells no name, and one that is configured
// with a name keeps it: there a restart with the same files is noticed only if
// it lost something that a processor has seen.
//
// # New pools
//
// A pool without a record freezes, unless the bucket is known to have forgotten nothing for as long as a
// share of it could be in use: within driver.Removal of the longest lease, and with
// consensus.Degrade within an hour and a quarter more. Two markers tell, the keys =marker-1 and
// =marker-2, which no pool has. A marker holds the life of the bucket that it vouches for: the identity,
// and with a single replica the ID that the server has from its start to its end. It counts
// from the later one of two times: that of the stream's information before it was written, which it holds, and its own
// stamp. The first sync of a new pool, and once an hour one of any other, writes a
// marker where there is none of this life. A record expires with its bucket's age, and so does
// a marker: the second one is written when the first is half a day old.
//
// Why a marker of this life that is old enough is proof. Shares of a pool are granted by its
// record only, so what matters is how a record can go and a marker stay.
//
//   - The bucket is deleted or lost: the next one has another creation time.
//   - Another server leads the stream: the identity is another one. When the first one leads again,
//     its marker counts again. What was acknowledged in between is on a majority of the replicas,
//     and no server without it is elected.
//   - The only server of a bucket fails with its machine, and has lost the newest writes:
//     it has another ID. A client that is not connected to that server itself cannot know the ID,
//     and takes no pool for new.
//   - The stream is in memory: no marker is written.
//   - The bucket is full, or purged up to some entry, or entries expire: the oldest go first, in the order in which they were
//     written, also with a history. A record that has gone before the marker was written before it, so its shares
//     are older than the marker.
//   - A record is deleted: that leaves an entry which says so, and such a pool freezes.
//   - The clock is set back: a marker ahead of it counts as new, and one far ahead is written anew.
//   - The bucket goes, or its leader, between what was read and the write: the stream's information is
//     read once more before a new pool gets its first answer.
//
// Servers before 2.10 do not tell their time; there each new pool freezes.
//
// As with the other stores, some things defeat the marker: to take a pool's record away by hand without a
// trace while processors use it (purging or compacting its subject, or putting back an older backup of the
// bucket; delete the markers too), a server clock that leaps ahead by more than that time after the data was lost and
// before the time has passed, and the loss of power at a majority of the replicas at once. A processor that
// was in the pool notices with its next sync; until then a new one may be granted what the others hold.
//
// # The bucket
//
// The first sync makes the bucket if there is none: stream KV_<bucket>, file
// storage, the newest value of each key only, a byte limit, three replicas where
// the servers are a cluster. `nats kv` shows it. A record expires a week after its
// last write, and every sync writes. Beyond the limit, the records go that were
// not written for the longest time. A pool whose record is gone starts as a new
// one.
//
// A bucket that exists is used as it is, provided that its settings let a pool
// work; every sync looks at them. What cannot work is an error: a stream that
// refuses updates, expiry in less than a day, a max_msg_size below 4 KiB, a mirror, and so on.
// What works for now is warned about once, with what to change: a max_msg_size below 128 KiB, which
// a record of a hundred processors and a thousand tags with quotas stays below, and a limit with discard new. Such a bucket refuses what grows once
// it is full, instead of letting the oldest records go: who is in a pool may stay, but nobody can join. The error then names the setting.
//
// # Servers 2.9.0 to 2.9.25 with replicas
//
// Up to 2.9.20 a leader with replicas checks the expected sequence of a subject
// against what it has applied, and not again when it applies the write, so that
// two writers at once both succeed. Where there are replicas, and the server does
// not show that it is 2.10 or later, a write is therefore also conditional on the
// sequence of the whole stream, which is checked when the write is applied. There,
// all pools of a bucket compete with each other: give busy pools their own.
//
// # Permissions
//
// A user who may not do everything needs, with B for the bucket: publish to
// $JS.API.STREAM.INFO.KV_B, $JS.API.STREAM.MSG.GET.KV_B and $KV.B.>, publish to
// $JS.API.STREAM.CREATE.KV_B unless the bucket is there already, and subscribe to
// _INBOX.> (or the inbox prefix of the connection) and to $KV.B.push.> for news. A missing
// permission shows as a timeout: the server tells the connection's error handler and nobody
// else. Without the last one pauses count from the next sync on instead of at once.
//
// # Keys
//
// The key of a pool is its name with every byte other than letters, digits, "-",
// "_" and "/" written as "=" and two hexadecimal digits: ns/pipe/map stays as it
// is. A name that becomes longer than 200 bytes is "==" and its SHA-256 instead.
package natsstore
