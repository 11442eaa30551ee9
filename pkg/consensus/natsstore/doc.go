// Package natsstore keeps pools in NATS JetStream, in a key-value bucket with one key per pool. It needs NATS server 2.9 or later, standalone
// or clustered, with any number of replicas.
//
//	nc, err := nats.Connect("nats://nats:4222", natsstore.ConnectOptions()...)
//	if err != nil {
//		return err
//	}
//	defer nc.Close()
//	store, err := natsstore.New(nc) // makes the bucket at the first use
//	if err != nil {
//		return err
//	}
//	member, err := consensus.Join(ctx, store, "orders/llm")
//	if err != nil {
//		return err
//	}
//	defer member.Leave(ctx)
//
// [ConnectOptions] keep the connection trying when the server is away. [WithBucket] separates pools of several teams; [WithReplicas] and
// [WithMaxBytes] set how a new bucket is made. A pool of more than about a hundred processors belongs into package redisstore.
//
// # One sync
//
// The store needs only compare-and-set. The record of a pool is one value (see [driver.Record]). A sync first reads the stream's
// information and then the pool's entry. Both come from the stream's leader, never from a replica or a cache. Then it applies Record.Sync,
// and writes the value back on condition that nobody else has written since. If somebody has, it waits for a random time and reads the
// entry again. Without interference that is three messages to the server, one after the other. Each further try takes two more. After all
// tries it takes one more: it reads the stream's information again, because the bucket must not have changed since the first try. Syncs of
// one Store on one pool take turns instead of competing. A request that changes nothing (a repeat or a refused request) is answered
// without a write: its answer is already on record.
//
// In a cluster no server answers a read while the cluster as a whole has no leader, even if the stream has one and accepts writes. If one
// server led both, the pool waits for two elections.
//
// A leader that loses the other servers believes for ten seconds that it leads: it answers reads, and takes writes that it can't commit. The
// stream's information tells when it last heard from each of them. A Store doesn't use a leader that has heard from no majority for three
// seconds, and looks for the next one through another server.
//
// A write acknowledgement carries no time, so the next step reads the server's time of a step back with the entry (driver.At.Deferred). The
// time of a saved document counts as the time of the step before, so an unused pool appears idle since that step at most. A write without a
// timely acknowledgement may have been executed, or may be executed later: Sync returns an error, and the sequence numbers of the next
// request make it harmless.
//
// # Permits
//
// The time of a reservation is the time of its write. The reserver reads it back together with the stream's information, which shows
// whether the stream still has the leader from before the write. If others have written since, the record has the outcome, as long as it is
// one of the newest sixteen. A Store that seems to be the only one reserving keeps the entry that it has read back, and bases its next
// write on it.
//
// # News
//
// News of pauses uses core NATS, with subjects of the bucket below push, which has no keys. A header makes the bucket refuse news, so that
// it keeps none and none comes between the writes of records. All connected processors receive it, also while the bucket has no leader.
// News needs no consumers: from 2.15 on a stream has a thousand at most.
//
// # How many processors
//
// All processors of a pool write one value. This suits about a hundred processors in a pool with one sync per second each, at round trips
// of up to five milliseconds. Syncs are not combined. See docs/operations.md for measurements with more processors. When requests lose to
// others too often, intervals stretch as with any slow store. A joining processor gives up after a quarter of its time. It does not try
// while one in a hundred holders of shares is overdue (driver.Record.HoldersWait), so that holders win. The server is the server of the
// connection: JetStream domains are not supported.
//
// # Identity
//
// The identity of the server is the creation time of the stream and the name of the server that leads it. So a deleted or lost bucket and a
// new leader freeze the bucket's pools for one removal time of the longest lease. A standalone server of version 2.9.10 reports no name,
// and a server with a configured name keeps it. There a restart with the same files is noticed only if it lost something that a processor
// has seen.
//
// # New pools
//
// A pool without a record freezes, unless the bucket is known to have lost nothing for as long as a share of the pool could be in use. That
// is one and a half times the longest lease, and with consensus.Degrade an hour and a quarter more. Two markers show this, the keys =marker-1
// and =marker-2, which belong to no pool. A marker holds the life of the bucket that it vouches for. That is the identity, and with a
// single replica also the ID that the server keeps from its start to its end. It counts from the later of two times: its own stamp, and the
// stream information's time from before the write, which it holds. The first sync of a new pool, and once an hour a sync of any other pool,
// writes a marker if there is none of this life. Records and markers expire with the bucket's age: the second marker is written when the
// first is half a day old.
//
// Why a marker of this life that is old enough is proof: only a pool's record grants shares of the pool. So the question is how a record
// can vanish while a marker stays.
//
//   - The bucket is deleted or lost: the next one has another creation time.
//   - Another server leads the stream: the identity differs. When the first one leads again, its marker counts again. Writes acknowledged in
//     between are on a majority of the replicas, and no server without them is elected.
//   - The only server of a bucket fails with its machine and loses the newest writes: it has another ID. A client not directly connected to
//     that server cannot know the ID, and treats no pool as new.
//   - The stream is in memory: no marker is written.
//   - The bucket is full, or purged up to some entry, or entries expire: the oldest entries go first, in the order of writing, even with a
//     history. A record that vanished before the marker was written before it, so its shares are older than the marker.
//   - A record is deleted: that leaves an entry that marks the deletion, and such a pool freezes.
//   - The clock is set back: a marker ahead of it counts as new, and one far ahead is written again.
//   - The bucket or its leader changes between reading and writing: the stream's information is read once more before a new pool gets its
//     first answer.
//
// Servers before 2.10 do not report their time; there each new pool freezes.
//
// As with the other stores, some events defeat the marker. One is removing a pool's record by hand without a trace while processors use it.
// Examples are purging or compacting its subject, or restoring an older backup of the bucket; delete the markers too. Another is a server
// clock that leaps ahead by more than the period above, after the data was lost and before that period has passed. The third is a power
// loss at a majority of the replicas at once. A processor of the pool notices at its next sync. Until then a new processor may be granted
// shares that others hold.
//
// # The bucket
//
// The first sync makes the bucket if there is none. It is the stream KV_<bucket>, with file storage, only the newest value of each key, a
// byte limit, and three replicas in a cluster of servers. `nats kv` shows it. A record expires a week after its last write, and every sync
// writes. Beyond the limit, the records with the oldest writes are dropped. A pool without its record starts as a new one.
//
// An existing bucket is used as it is if its settings suit pools; every sync checks them. Unusable settings are an error: a stream that
// refuses updates, expiry in less than a day, a max_msg_size below 4 KiB, a mirror, and so on. The store warns once, with advice, about
// settings that work only for now. One is a max_msg_size below 128 KiB; a record of a hundred processors and a thousand tags with quotas
// stays below that. Another is a limit with discard new. Once full, such a bucket refuses larger records instead of dropping the oldest
// ones. Processors in a pool may stay, but nobody can join, and the error names the setting.
//
// # Servers 2.9.0 to 2.9.25 with replicas
//
// Up to 2.9.20 a leader with replicas checks the expected sequence of a subject against its applied writes, and not again when it applies
// the write. So two concurrent writers both succeed. With replicas and no proof of server 2.10 or later, a write is therefore also
// conditional on the sequence of the whole stream. That is checked when the write is applied. Then all pools of a bucket compete with each
// other, so give busy pools their own buckets.
//
// # Permissions
//
// A user with restricted permissions needs the following, with B for the bucket. Publish: $JS.API.STREAM.INFO.KV_B,
// $JS.API.STREAM.MSG.GET.KV_B, $KV.B.>, and $JS.API.STREAM.CREATE.KV_B unless the bucket exists already. Subscribe: _INBOX.> (or the inbox
// prefix of the connection), and $KV.B.push.> for news. A missing permission shows as a timeout: the server reports it only to the
// connection's error handler. Without the permission for news, pauses take effect at the next sync instead of at once.
//
// # Keys
//
// The key of a pool is its name. Letters, digits, "-", "_" and "/" stay as they are, and every other byte is written as "=" and two
// hexadecimal digits. A key longer than 200 bytes is replaced by "==" and the name's SHA-256.
package natsstore
