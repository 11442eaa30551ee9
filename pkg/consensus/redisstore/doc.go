// Package redisstore keeps pools in Redis 5 or later, or a server compatible with
// it: a single server, one behind Sentinel, or a Cluster.
//
// A sync is one request at the server: EVALSHA of a constant script that does
// what Record.Sync of package consensus does, on the server's clock. The answer
// carries every row, so its cost grows with the pool: about 0.1 ms of the server's
// time with 100 processors, about 1 ms with 1,000.
//
// # Keys
//
// A pool is one hash, {numathrottle:G}:pool:NAME, with a field for the pool, one for
// permits if there is something to say of them, one for each row, and one for each
// document. G is one of 16 groups, picked by a hash of the pool's name: the
// part in braces is what Cluster places keys by, so that a group lies on one node
// whole. A pool expires a day after its last sync or leave, or a week if it has
// documents: an override is there after a weekend in which nobody was.
// Tills are in a hash of their own, {numathrottle:G}:tills:NAME, which expires with the pool and
// is read only by syncs that draw: 3 to 4 us of the server's time for each draw. If it is lost without
// the pool, the pool freezes.
// {numathrottle:G}:marker belongs to the group; see below. A key that holds
// something else, or a newer format, is an error and stays as it is.
//
// # Requests that come too late
//
// A busy server still reads requests whose callers have given up. Each sync and reservation says
// when it expires, on the server's clock, and the script begins with that: what has expired
// changes nothing, however large the pool is, and costs little. The Store estimates the server's clock from its
// answers, so the clocks need not agree; a wrong estimate costs one more request. A joiner
// that has no estimate yet gets the time first if the pool has 64 rows or more. The error of a
// request that expired wraps driver.ErrOverdue.
//
// # When a pool freezes
//
// Redis may lose what it has acknowledged, so every record names the life of the
// server that wrote it: the run_id of INFO, which no other server has and which a
// restart changes. A sync that finds another run_id, an older record than its
// sender has seen, or none at all freezes the pool, because shares may be in use
// of which nothing is on record.
//
// An absent pool is only then known to be new when this life of the server would
// still have it, had it been there since a share of it may have been granted that is
// still in use: within driver.Removal of the longest lease, and with consensus.Degrade
// within an hour and a quarter more. The marker tells: it holds the run_id, the
// number of keys evicted, and since when both have been true. The first sync of
// any pool of the group on this life of the server writes it. An absent pool is
// taken for new when the marker is older than that and
//
//   - it names this run_id: after a restart or a failover it does not;
//   - it is there: FLUSHALL and FLUSHDB take it along with the pools, which is why
//     pools share one. With a marker for each pool none could ever be older;
//   - the server has evicted no key since, and evicts none (maxmemory-policy is
//     noeviction, or maxmemory is 0): eviction takes single keys;
//   - it was not written in what is the future of a clock that was set back.
//
// In every other case the marker is written anew and the new pool waits. The
// marker expires half a day after the last sync of its group, before any pool, so
// that a clock that leaps ahead takes the marker along with the pools.
//
// Two things defeat the marker: taking a pool's key away by hand while processors
// use it, with DEL or SWAPDB (leave it to expire, or delete the marker too), and a
// server clock that leaps by more than that time after the data was lost and
// before it has passed. A processor that was in the pool notices either with its
// next sync; until then a new one may be granted what the others hold.
//
// # Durable servers
//
// A server whose every write is on disk before it answers, and that has no replica to
// take its place, has forgotten nothing when it was started again, but nothing in
// Redis says so. WithDurable does: then the life that counts is that of the data,
// named by a random word in the marker, and a restart freezes no pool.
//
// # Permits
//
// A reservation is one request, too, and costs about twice what a script costs that keeps
// one time in one key: half of the difference is INFO, because nothing cheaper that a
// script may ask tells one life of the server from another. TIME, LASTSAVE and the
// replication's IDs can be the same after a restart or a failover, and what a client
// knows of its connection is not true behind a proxy. Several slots in one reservation cost
// hardly more than one.
//
// # What the server must allow
//
// maxmemory-policy noeviction; another one is warned about once. A user of the ACL
// needs the keys ~{numathrottle:*}:* and the commands +eval +evalsha +time +info
// +hget +hmget +hgetall +hlen +hset +hdel +pexpire +get +set +ping. For another database than 0
// it needs +select, in a Cluster +cluster|slots and +asking. For news it needs the channels
// &{numathrottle:*}:push* (servers from 7 on allow a new user none) and +subscribe
// +unsubscribe +publish, in a Cluster of servers from 7 on +ssubscribe +sunsubscribe
// +spublish; without them pauses count from the next sync on instead of at once. docs/stores.md
// has the same as lines of a configuration. Who lists pools (Pools), which no processor does, needs +scan.
// A client that is not made with ClientOptions sends more:
// +client|setinfo, and in a Cluster +command unless DisableRoutingPolicies is set.
//
// # News
//
// News of pauses go over a channel of each pool, {numathrottle:G}:push:NAME, or push@DB for
// another database than 0; in a Cluster whose
// servers know sharded channels, over such a one. A Store that watches has one more connection for
// each pool, which is made anew when it is lost.
//
// # Client
//
// In a Cluster, set DisableRoutingPolicies on what ClientOptions.Cluster returns: else the client asks for the
// list of all commands, again and again where that is denied.
//
// ClientOptions returns the settings that suit a sync: short timeouts, the
// context's deadline respected, no retries, and a server that is away is looked for
// at each sync. A client that does retry does no harm,
// for a request applied twice counts once; it only delays the next one, which
// would tell the server more.
package redisstore
