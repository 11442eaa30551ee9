// Package consensus divides one limit among the processes of a pool, such as the pods of a vertex. The shares in use never add up to more
// than the whole, whatever happens to processes, network and store.
//
//	store := redisstore.New(redis.NewUniversalClient(redisstore.ClientOptions("redis:6379")))
//	member, err := consensus.Join(ctx, store, "orders/llm", consensus.WithID(os.Getenv("POD_NAME")))
//	if err != nil {
//		return err
//	}
//	limiter, err := throttle.New(throttle.Limit{Max: 600, Per: time.Minute}, // over all pods
//		throttle.WithSharer(member), throttle.OnClose(member.Leave))
//	if err != nil {
//		return err
//	}
//	defer limiter.Close() // others get the share at once
//
// One [Member] serves one limiter: a second limit is a pool of its own. [Join] returns at once, and callers wait for the first share. To
// fail if the store can't be reached, use [WithFailFast].
//
// # What to choose
//
//   - The store: packages [github.com/numaproj-contrib/numathrottle/pkg/consensus/redisstore] and
//     [github.com/numaproj-contrib/numathrottle/pkg/consensus/natsstore] for pods,
//     [github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore] within one process and in tests. Package [driver] is for authors of
//     another one.
//   - The policy: [Fair] (the default) gives tokens to the processors that ask for them, [Even] gives the same to each. See [WithPolicy].
//   - What happens while the store is away: [Degrade] (the default) continues with the last share or less, [Stop] grants nothing. See
//     [WithOnStoreLoss]. A hard limit needs [Stop].
//   - The lease: how long a share is good without the store, [MinLease] to [MaxLease]. See [WithLease].
//
// [Member.View] shows the pool as this processor sees it, and [WithOnSync] reports each sync. Operators change and inspect a pool with
// package [github.com/numaproj-contrib/numathrottle/pkg/operate].
//
// # The protocol
//
// The rest of this page is the protocol. Package [driver] has the store's part of it in detail.
//
// # Words
//
//   - A pool is the processors that share a limit.
//   - A processor has an ID. Each start of a process under an ID is an incarnation.
//   - A share is the fraction of the limit that a processor may use.
//   - A claim is the share of a processor that the store has on record.
//   - A lease is how long a share is good for without another sync, 10 s by default.
//   - A sync is one request to the store and its answer.
//   - The demand of a processor is the share that it could use. The policy turns the demands
//     of all into what each one wants.
//   - The pool size is the number of processors that a processor divides by. The pool
//     agrees when all live processors report the same size and it equals their number.
//     [View.Agreed] shows this to operators; no rule rests on it.
//   - The logical clock of a pool is the store's clock, without its jumps.
//   - A frozen pool lets no share grow until every share that the store may have
//     forgotten has ended.
//   - A clone is a copy of a running process, for example in a copied virtual machine.
//   - Debt is the tokens that calls used beyond those they drew.
//
// # The idea
//
// The store never lets claims add up to more than the whole, in one atomic step. The
// processors decide who should have how much, by a policy over the demands of all. Two
// rules make this safe without any message between processors:
//
//   - Down at once, up when granted. A processor that wants less uses less at once, and
//     reports it with its next sync. One that wants more waits for the answer.
//   - The lease ends before the claim. A processor counts its lease from the moment it
//     sent the request, and stops when the lease ends. The store removes a silent
//     processor's claim after one and a half leases.
//
// # Four processors over ten seconds
//
// All processors can use the whole limit, so each should have an equal share. A joins at
// 0 s, B at 1 s, C and D at 2.5 s. D dies at 5 s. C leaves at 7.5 s. From 8.5 s on B can
// use no more than 10 %. Each line is a sync that changed a share or a claim. A test keeps
// the table true.
//
//	time   sync  in use  wants  answer    shares:  A    B    C    D    claims:  A    B    C    D
//	 0.00  A       0%    100%    100%            100%   0%   0%   0%             100%
//	 1.00  B       0%    100%      0%            100%   0%   0%   0%             100%   0%
//	 2.00  A     100%    100%    100%             50%   0%   0%   0%             100%   0%
//	 2.00  A      50%     50%     50%             50%   0%   0%   0%              50%   0%
//	 2.00  B       0%     50%     50%             50%  50%   0%   0%              50%  50%
//	 2.50  C       0%    100%      0%             50%  50%   0%   0%              50%  50%   0%
//	 2.50  D       0%    100%      0%             50%  50%   0%   0%              50%  50%   0%   0%
//	 2.50  B      50%     50%     50%             50%  25%   0%   0%              50%  50%   0%   0%
//	 2.50  B      25%     25%     25%             50%  25%   0%   0%              50%  25%   0%   0%
//	 2.60  C       0%     33%     25%             50%  25%  25%   0%              50%  25%  25%   0%
//	 3.00  A      50%     50%     50%             25%  25%  25%   0%              50%  25%  25%   0%
//	 3.00  A      25%     25%     25%             25%  25%  25%   0%              25%  25%  25%   0%
//	 3.00  D       0%     25%     25%             25%  25%  25%  25%              25%  25%  25%  25%
//	 5.00  A      25%     25%     25%             25%  25%  25%    -              25%  25%  25%  25%
//	 7.50  C leaves                               25%  25%   0%    -              25%  25%   0%  25%
//	 8.00  A      25%     33%     33%             33%  25%   0%    -              33%  25%   0%  25%
//	 8.00  B      25%     33%     33%             33%  33%   0%    -              33%  33%   0%  25%
//	 8.50  B      10%     10%     10%             33%  10%   0%    -              33%  10%   0%  25%
//	 8.60  A      33%     45%     45%             45%  10%   0%    -              45%  10%   0%  25%
//
// Read it like this:
//
//   - 0 s: A finds an empty pool and gets the whole. The store knows that the pool is new;
//     otherwise it would freeze it first (see below).
//   - 1 s: B asks for the whole, but there is no room. The answer shows that its share is
//     half. It asks again every 0.1 s; these syncs change nothing and are not shown.
//   - 2 s: A learns of B with its next regular sync and drops to 50 % at once. Its second
//     sync follows immediately and lowers the claim to 50 %. Now B gets 50 %.
//   - 2.5 s: C and D find no room. B learns of them first and gives up a quarter, which C
//     gets. A gives up its quarter with its next sync, and D gets it. The pool is in balance
//     half a second after they joined.
//   - 5 s: D dies. The store cannot tell death from silence, so the claim stays until 19 s,
//     15 s after D's last sync. Nobody can use it until then.
//   - 7.5 s: C leaves and says so. A and B find its share free with their next syncs.
//   - 8.5 s: B needs only 10 %. The rest goes to A a tenth of a second later. D still
//     counts as wanting its part: 100 - 10, divided by two, makes 45 % for A.
//
// # What is guaranteed
//
// At every instant the shares in use add up to at most one. This holds while processors
// join, leave, crash, restart under the same ID, stall and are cut off. It holds while
// packets are lost, late, repeated and reordered. It holds while the store restarts
// empty, fails over to an older copy, or its clock jumps.
//
// There is one exception. With [Degrade], the default, a processor that loses the
// store continues with the smaller of its last share and an even one. The bound still holds
// when the store is down for all. While only k of n processors are cut off, the pool may
// use up to 1 + k/n; n is the pool size that they saw last. A processor that was stopped
// for 0.6 leases meanwhile draws nothing until the store answers. With [Stop] there is no
// exception: without a lease nothing is granted.
//
// The guarantee rests on these assumptions:
//
//   - Clocks run at most 8.33 % fast or slow, which is chrony's default limit.
//   - A store's clock is set by less than the clamp, a quarter of a lease, at most once per
//     removal time. Larger changes may come at any rate.
//   - The wall clock of a suspended machine keeps running.
//
// It does not cover a permit that a thread holds between the check and the call. It does
// not cover a cloned machine within one lease of the cloning, or of a fallback of the store
// to an older record in that time.
//
// # Times
//
// All times follow from the lease L:
//
//	interval   L/10   between two syncs; stretched to at most L/4, so that a pool syncs at
//	                  most 100 times a second (with more than 250 processors it syncs more)
//	fast       L/100  while a processor lacks part of its share and others can give it;
//	                  at least 0.25 ms per processor, and from 64 processors on twice as
//	                  long after each request that brought nothing
//	clamp      L/4    the longest gap between two steps that the pool's clock counts
//	removal    1.5 L  from a processor's last sync until its claim is removed
//
// # An overloaded store
//
// An overloaded store must not receive more requests because it is late. Four rules ensure
// this:
//
//   - A request that takes a quarter of the sync timeout longer than the quickest answer so far,
//     or times out, doubles the interval. The most is L/2, or with fewer than 16 processors L/4 minus the sync timeout.
//     Each quick answer takes a quarter off again. With quotas, intervals stay as they are, because
//     tokens of tags are drawn for one interval.
//   - After a failed sync the next one waits an interval, then two, four, up to L/2; half of
//     each wait is random. If the store refused at once, the wait is a quarter of an interval,
//     then a half, and so on. This also holds before the first answer. Towards the end
//     of a lease, and with a degraded share, the wait is shorter.
//   - From 64 processors on, shares change only with regular syncs while intervals are
//     stretched: a second sync for each change would double the load.
//   - A request's deadline limits how long it may wait for the store
//     ([driver.Request.Patience]): a quarter of the timeout for a processor that joins, half for one
//     without a share, three quarters for one that has a share to lose. Redis skips
//     requests that arrive later. There a processor that doesn't know the server's time yet
//     may wait longer, by the queue that its first request met. On NATS, where requests compete, joiners stop competing then,
//     wait longer between tries, and hold back while holders are overdue.
//
// The worst clocks stretch a lease to L x 1.0833/0.9167 = 1.18 L on the store's clock. A
// change of the clock adds up to one clamp: 1.43 L, which is less than 1.5 L.
//
// # The processor's side
//
//   - Requests have rising numbers. Only the answer to the newest request is accepted.
//   - If the share that a request reported has ended since, the answer renews nothing. The
//     share is 0 and the next request follows at once.
//   - A request names each earlier one that got no answer, 32 at most. A processor with 32
//     of them repeats the newest one until it is answered.
//   - Local times are monotonic. A watchdog compares them with the wall clock, and ends the
//     lease of a machine that was suspended.
//   - A reduction below 5 % waits until somebody lacks room. In a frozen pool every
//     reduction waits, because nobody else could have it.
//   - A processor that leaves with debt, from calls that used more than estimated, first
//     pays it off by not using its share. If that takes too long, it does not notify the
//     store: the claim stays until its removal.
//   - Calls in flight outlast their grant. Their limiter first puts a lower share in force,
//     and then counts the calls. The store receives the larger of the two.
//
// # The store's side
//
// A step first moves the pool's logical clock, then removes silent rows, records the share
// in use, and grants what there is room for. The answer says when a request is late, repeated,
// replaced or from a clone. Package driver describes each step.
//
// A store may lose state: it restarts empty, or falls back to an older copy. Requests reveal
// this, because they report what their senders have seen. The store then freezes the pool for
// one removal time: no share grows until every forgotten share has ended. A pool that is new
// to a store waits for the same reason: an earlier lease may still be in use. The store skips
// this wait when it can prove that there is none.
//
// # Documents
//
// A document holds what all processors of a pool must know: a name, a version, and a body of
// up to 4,096 bytes. A pool has at most 8. Stores do not interpret them. A request
// reports the versions that its sender has loaded, and an answer brings those that differ. So
// a body is sent only when it is new.
//
// A processor proposes a change with the version that it is based on. The store takes the
// first proposal and answers the others with the recorded version. When the store has lost a
// document, a holder of the newest version restores it. [Store.Save] changes a document from
// outside, on the same condition. Keeping shares apart does not depend on documents, so a
// freeze does not stop them.
//
// Each processor describes itself to all others in a note of up to 128 bytes.
//
// # The limit in force
//
// A share is a fraction of the limit in force. The processors compute that limit from the
// same documents and notes, so they agree. Stores do no arithmetic.
//
//   - The document "limit" overrides the configured limit. A processor that cannot read it
//     renews nothing until it can.
//   - Without an override, the lowest configured limit of a live processor counts.
//   - The document "ramp" holds the state of a ramp. About once a second one of the
//     processors makes the next step and proposes the result.
//   - The document "backoff" holds how far refusals of the called service have lowered the
//     limit. Notes carry what each processor saw: accepted, refused, overloaded.
//
// A processor leases share x limit in force / configured limit to its limiter. A falling
// limit is read 200 ms ahead, so the pool never exceeds it. During the sync interval in which
// an override spreads, some processors still use the previous one.
//
// # Pauses
//
// The document "pause" lists the pauses: for each a tag (empty for all), the logical time of
// writing, a duration and a reason.
//
//   - A pause follows the pool's logical clock, so no wall clock shortens it, and it outlives
//     all processors. A pool that starts over takes off the time in which it was empty.
//   - Of two pauses of a tag the later end counts. Resuming removes the pause and records
//     the version that did so, so that nobody restores the old pause.
//   - A Pusher spreads the document at once. A pushed pause stops processors but resumes
//     none, and is dropped when an answer shows that the store does not have it.
//   - A processor's note contains the version in force: its receipt. An answer renews
//     nothing before its documents are loaded, so a processor without a receipt has no share
//     by the end of its lease.
//
// # Permits
//
// A share of a low limit would be too small to use, and a strict limit cannot be divided at
// all. There the store reserves slots: moments on its clock, at least the limit's spacing
// apart across all processors. A permit is one slot.
//
//   - The pool begins to issue permits when spacing x live processors exceeds the interval,
//     or when a processor is strict. It ends when twice that product is below the interval.
//   - While it issues permits, no share is granted. The issuer is like one more processor:
//     it claims everything that the other claims leave, and needs a third to reserve.
//   - When issuing ends, no share grows until the newest slot and its validity have passed:
//     a tenth of the spacing, at least 250 ms and at most 2.5 s.
//   - Slots do not accumulate, and lie no further ahead than the request allows. The newest
//     can be returned while nobody has reserved since.
//   - A freeze holds slots for another spacing, and until all slots that the store has
//     forgotten are past. Each processor reports in its syncs how far its own lie ahead.
//
// # Deaths
//
// A claim of a dead process stays until its removal. An answer has the sum of the claims of
// dead rows ([driver.Grant.Closed]), and the others divide the rest. So a
// process that was killed and has started again under its ID gets a share before then.
//
// The claim is free at once if a request reports the death. A request may list incarnations
// of its own ID whose processes are known to be dead, and the step removes their claims.
//
// The proof is a lock that the kernel releases only when its holder dies. The successor finds the last state of the dead process: its
// incarnation and the requests it had sent. A row whose newest request is not among these belongs to a clone, which may live; it keeps
// its claim. The dead process's debt is earned before its death is reported. Reporting the
// death of a live process breaks the bound: the store believes it.
//
// # Tags
//
// A limiter with quotas shares its limit among tags: tenants, models, keys. Two things hold over the whole pool:
//
//   - Each total and each budget is a tag bucket: one number at the store for each tag. A request draws the tokens that its
//     tags will use until a bit after the next answer. So no total is divided by the number of processors, and no budget
//     is counted twice. Package driver has the rules of tag buckets.
//   - Reservations and priorities are policy (package internal/fairtags). Each processor reports the demand of its
//     busiest tags in its row. From the same roster all compute the same shares, tags first, then processors. A policy
//     cannot break a bound.
//
// The processor's side of a tag bucket:
//
//   - Drawn tokens are void two intervals after the request was sent, by the monotonic clock.
//   - A request returns the tokens that would end before the next one, after the limiter has given them up. Budgets get
//     them back, totals do not. While it has no answer, the requests after it return the same tokens and no others.
//     Tokens drawn before the store lost state, or in an earlier incarnation, are not returned. The last request before a
//     leave draws none, and returns all that are in hand or set aside.
//   - Budget windows follow the store's clock, as answers report it. Of several reports of spent tokens the maximum counts.
//   - Tag buckets serve once every live processor reports its tags: older releases would write a record without them. Until
//     then, and with [Degrade] while the store is away, each processor gives a tag total x its own share. During a change
//     between the two, batches (tokens drawn ahead) of both kinds can be good for two intervals. With [Stop] nothing is
//     granted later than two intervals after the last answer of the store.
//   - A processor whose row brings nothing new for two and a half intervals keeps its claim, but its demand no longer counts.
//   - The tags of a pattern are one tag for the policy, and each has its own tag bucket.
//   - With an adaptive limit, a limiter slows down a tag whose calls the service refuses. The
//     processor asks for no more for it, and reports the tag as slow. A tag that is slow on every processor that asks for
//     it is limited to the sum of their demands. A processor still asks for tokens reserved for it that no other row asks
//     for. The limiter does not go below the part that the plan guarantees the tag here.
//
// Quotas of calls in flight are numbers of slots. The pool's slots are divided by tags and processors as a rate is, and rounded to whole ones:
// first for what is reserved, then in turns of a lease by what each processor is due. Totals are counted by the store, as claims are: a request
// says how many slots of each tag are in use, wanted and asked for, and the answer how many the processor may use (package driver has the
// rules). A processor uses less at once and reports it then, and has an answer's slots in force before its lease. It asks the pool for no
// more slots for a tag than it may use of the total. While a processor of an older release is live, and with [Degrade] while the store is
// away, each processor uses total x its own share, rounded down, and for a lease after that no more than it has in use. When that begins, there
// can be more than the total until calls under way have ended. With [Stop] there never are.
//
// The document "quota" changes quotas in use; see [QuotaChanges]. A document that cannot be read changes nothing, but a tag bucket
// that knows a newer version gives nothing by an older one.
//
// The document "spent" lists the newest corrections of spent budgets, by package operate. The number itself is changed in the
// tag bucket first. On reading the document, each processor forgets any higher number it has seen, once; the answer that
// brings it reports at least the new number.
//
// # States of a processor
//
//	           answer with a share
//	joining ─────────────────────────▶ holding ◀──────────────┐
//	 ▲ ▲ │                              │  │ │                │ answer
//	 │ │ │ another process              │  │ │ lease over,    │
//	 │ │ │ has joined under             │  │ │ no answer      │
//	 │ │ │ this ID                      │  │ └──────────▶ store_lost
//	 │ │ ▼                              │  │              share 0, or degraded
//	 │ replaced ◀───────────────────────┘  │
//	 │   share 0 until the other is gone   │ Leave
//	 │                                     ▼
//	 └── cloned or removed: a new         left
//	     incarnation from anywhere
//
// # What each failure does
//
//	failure                          what happens                               until all is used again
//	processor leaves                 its claim is free at once                  one interval
//	processor dies                   its claim stays on record                  removal + one interval
//	restart under the same ID        the old claim stays on record              removal + one interval
//	the same, with its lock          the old claim is free at once              first answer
//	processor stalled past its lease draws nothing when it goes on; without     its next answer
//	                                 the store, when stalled for 0.6 leases
//	machine suspended                lease voided by the watchdog               its next answer
//	cloned machine                   incarnation closed, both start over;       removal
//	                                 within one lease both may draw (one more
//	                                 if the store falls back meanwhile)
//	two processes with one ID        the newer wins, the older draws nothing    removal
//	one processor cut off            lease ends; Stop: draws nothing,           its next answer
//	                                 Degrade: min(last share, 1/live)
//	store down, state kept           leases end; then as above                  first answer
//	store wiped or failed over       holders keep their shares, none grows;     removal of the longest lease
//	                                 they restore documents
//	store back by over 1,024 syncs   all start over                             removal of the longest lease
//	store restarted with its state   as wiped, unless known to have             removal of the longest lease, or
//	                                 forgotten nothing                          first answer
//	store clock is set               counts as no time, or one clamp at most    nothing to heal
//	request lost, repeated, late     sequence numbers make it harmless          next sync
//	news of a pause lost             it counts from the next sync on            nothing to heal
//	store down when a pause is made  processors that know of it have stopped;   its end
//	                                 it is recorded when the store answers
//	store wiped during a pause       holders restore it, on the new clock       its end
//	pool empty during a pause        the empty time is taken off                its end
//	pool killed whole in a pause     the time until somebody joins is added     its end, or Resume
//	called service can do less       adaptive: all use less together            about 10 s after it is back
//	store down while it can          each processor uses less of its share      the same
package consensus
