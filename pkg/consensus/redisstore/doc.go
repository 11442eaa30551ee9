// Package redisstore keeps pools in Redis 5 or later, or a compatible server: a single server, one behind Sentinel, or a Cluster.
//
//	client := redis.NewUniversalClient(redisstore.ClientOptions("redis:6379"))
//	defer client.Close()
//	store := redisstore.New(client)
//	member, err := consensus.Join(ctx, store, "orders/llm")
//	if err != nil {
//		return err
//	}
//	defer member.Leave(ctx)
//
// [ClientOptions] returns settings that suit a sync: short timeouts, the context's deadline respected, and no retries. Several addresses are
// a Cluster, or the sentinels of a MasterName. Set credentials and TLS on the result. [WithPrefix] separates pools of several teams on one
// server. [WithDurable] is for a server that loses nothing at a restart. Set maxmemory-policy to noeviction.
//
// # Cost
//
// A sync is one request to the server: EVALSHA of a constant script that does the work of [driver.Record.Sync], on the server's clock. The
// answer carries every row, so its cost grows with the pool: about 0.1 ms of the server's time with 100 processors, about 1 ms with 1,000.
//
// # Keys
//
// A pool is one hash, {numathrottle:G}:pool:NAME. It has a field for the pool, one for permits if needed, one for each row, and one for
// each document. G is one of 16 groups, picked by a hash of the pool's name. Cluster places keys by the part in braces, so a group lies on
// a single node. A pool expires a day after its last sync or leave, or after a week if it has documents, so an override survives an idle
// weekend. TagBuckets are in a separate hash, {numathrottle:G}:tag buckets:NAME, which expires with the pool. Only syncs that draw read it: 3 to 4 us
// of the server's time for each draw. If it is lost without the pool, the pool freezes. {numathrottle:G}:marker belongs to the group; see
// below. A key with other content or a newer format is an error, and the store does not change it.
//
// # Late requests
//
// A busy server still reads requests whose callers have given up. Each sync and reservation carries its expiry, on the server's clock, and
// the script checks that first. An expired request changes nothing and costs little, however large the pool is. The Store estimates the
// server's clock from its answers, so the clocks need not agree; a wrong estimate costs one more request. A joiner without an estimate
// first asks for the time if the pool has 64 rows or more. The error of an expired request wraps driver.ErrOverdue.
//
// # When a pool freezes
//
// Redis may lose acknowledged writes, so every record names the life of the server that wrote it. It is the run_id of INFO, which is unique
// to a server and changes at a restart. A sync freezes the pool if it finds another run_id, an older record than its sender has seen, or no
// record. The reason: shares may be in use that are not on record.
//
// An absent pool is known to be new only if this life of the server would still have it. That must hold for a pool that existed when a
// share still in use could have been granted. The period is one and a half times the longest lease, and with consensus.Degrade an hour and a
// quarter more. The marker shows this: it holds the run_id, the number of keys evicted, and since when both have applied. The first sync of
// any pool of the group in this life of the server writes it. An absent pool counts as new if the marker is older than that period and
//
//   - it names this run_id, which it does not after a restart or a failover;
//   - it exists: FLUSHALL and FLUSHDB remove it with the pools. This is why pools share a marker:
//     a marker for each pool could never be older than the pool;
//   - the server has evicted no key since, and evicts none (maxmemory-policy is
//     noeviction, or maxmemory is 0): eviction takes single keys;
//   - its time is not in the future, as after a clock was set back.
//
// Otherwise the marker is written again and the new pool waits. The marker expires half a day after the last sync of its group, before any
// pool. So a clock that leaps ahead removes the marker along with the pools.
//
// Two things defeat the marker. One is removing a pool's key by hand while processors use it, with DEL or SWAPDB; leave it to expire, or
// delete the marker too. The other is a server clock that leaps by more than that period, after the data was lost and before the period has
// passed. A processor of the pool notices either at its next sync. Until then a new processor may be granted shares that others hold.
//
// # Durable servers
//
// Some servers lose nothing at a restart: every write is on disk before they answer, and no replica can take their place. Redis does not
// report this, but [WithDurable] does. Then the life that counts is the life of the data, named by a random word in the marker, and a restart
// freezes no pool.
//
// # Permits
//
// A reservation is also one request. It costs about twice as much as a script that keeps one time in one key. Half of the difference is
// INFO: nothing cheaper that a script may call distinguishes one life of the server from another. TIME, LASTSAVE and the replication IDs
// can be the same after a restart or a failover, and a client's view of its connection is wrong behind a proxy. Several slots in one
// reservation cost hardly more than one.
//
// # What the server must allow
//
// Set maxmemory-policy to noeviction; the store warns once about another policy. An ACL user needs the keys ~{numathrottle:*}:* and the
// commands +eval +evalsha +time +info +hget +hmget +hgetall +hlen +hset +hdel +pexpire +get +set +ping. Databases other than 0 also need
// +select, and a Cluster +cluster|slots and +asking. News needs the channels &{numathrottle:*}:push* (servers from 7 on give a new user
// none) and +subscribe +unsubscribe +publish. In a Cluster of servers from 7 on it needs +ssubscribe +sunsubscribe +spublish. Without them
// pauses take effect at the next sync instead of at once. docs/stores.md has these as lines of a configuration. Listing pools (Pools),
// which no processor does, needs +scan. A client not made with [ClientOptions] sends more: +client|setinfo, and in a Cluster +command unless
// DisableRoutingPolicies is set.
//
// # News
//
// News of pauses uses a channel for each pool, {numathrottle:G}:push:NAME, or push@DB for databases other than 0. In a Cluster whose
// servers know sharded channels, it is a sharded channel. A watching Store has one more connection for each pool, which it opens again when
// it is lost.
//
// # Client
//
// In a Cluster, set DisableRoutingPolicies on the result of ClientOptions.Cluster. Otherwise the client asks for the list of all commands,
// repeatedly if that is denied.
//
// If a server is down, each sync tries again to reach it. A client that retries does no harm, because a request applied twice counts once. It only delays the
// next request, which would tell the server more.
package redisstore
