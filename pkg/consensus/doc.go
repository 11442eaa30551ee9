// Package consensus divides one limit among the processors of a pool. The shares in
// use never add up to more than the whole, whatever happens to processors, network and
// store.
//
// This page is the protocol. Package driver has the store's part of it in detail.
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
//     View.Agreed tells operators so; no rule rests on it.
//   - The logical clock of a pool is the store's clock, without its jumps.
//   - A frozen pool lets no share grow, until every share that the store may have
//     forgotten is over.
//   - A clone is a copy of a running process, as of a virtual machine that was copied.
//   - Debt is what calls used above the tokens that they drew.
//
// # The idea
//
// The store never lets claims add up to more than the whole, in one atomic step. The
// processors decide who should have how much, by a policy over the demands of all. Two
// rules make this safe without any message between processors:
//
//   - Down at once, up when granted. A processor that wants less uses less at once, and
//     tells the store with its next sync. One that wants more waits for the answer.
//   - The lease ends before the claim. A processor counts its lease from the moment at
//     which it sent the request, and stops when it is over. The store removes a silent
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
//   - 0 s: A finds an empty pool and gets the whole. The store knows the pool to be new;
//     otherwise it would be frozen first, see below.
//   - 1 s: B asks for the whole, and there is no room. From the answer it knows that half
//     is its share. It asks again each 0.1 s; these syncs change nothing and are not shown.
//   - 2 s: A learns of B with its next regular sync. It uses 50 % at once. Its second sync
//     follows at once and tells the store, so that the claim falls to 50 %. Now B gets 50 %.
//   - 2.5 s: C and D find no room. B learns of them first and gives up a quarter, which C
//     gets. A gives up its quarter with its next sync, and D gets it. The pool is in balance
//     half a second after they joined.
//   - 5 s: D dies. The store cannot tell death from silence, so the claim stays until 19 s,
//     15 s after D's last sync. Nobody can use it until then.
//   - 7.5 s: C leaves and says so. A and B find its share free with their next syncs.
//   - 8.5 s: B needs 10 %. What it gives up goes to A, a tenth of a second later. D is still
//     counted as one that wants its part: 100 - 10, divided by two, makes 45 % for A.
//
// # What is guaranteed
//
// At every instant the shares in use add up to at most one. This holds while processors
// join, leave, crash, restart under the same ID, stall and are cut off. It holds while
// packets are lost, late, repeated and reordered. It holds while the store restarts
// empty, fails over to an older copy, or its clock jumps.
//
// There is one exception. With StoreLoss Degrade, the default, a processor that loses the
// store goes on with the smaller of its last share and an even one. The bound still holds
// when the store is down for all. While k of n processors alone are cut off, the pool may
// use up to 1 + k/n; n is the pool size that they saw last. A processor that was stopped
// for 0.6 leases meanwhile draws nothing until the store answers. With Stop there is no
// exception: without a lease nothing is granted.
//
// The guarantee rests on these assumptions:
//
//   - Clocks run at most 8.33 % fast or slow, which is chrony's default limit.
//   - A store's clock is set by less than the clamp, a quarter of a lease, at most once per
//     removal time. It may be set by more as often as you like.
//   - The wall clock of a suspended machine runs on.
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
//	fast       L/100  while a processor lacks what it should have and others can give it;
//	                  at least 0.25 ms per processor, and from 64 processors on twice as
//	                  long after each request that brought nothing
//	clamp      L/4    the longest gap between two steps that the pool's clock counts
//	removal    1.5 L  from a processor's last sync until its claim is removed
//
// # An overloaded store
//
// A store with too much to do must not be asked for more because it is late. Four rules
// see to that:
//
//   - An answer that takes a quarter of the sync timeout longer than the quickest one so far
//     doubles the interval, up to L/2, and with fewer than 16 processors up to L/4 without the
//     sync timeout. Each quick answer takes a quarter off again. With quotas intervals stay, because
//     tokens of tags are drawn for one interval.
//   - After a failed sync the next one waits an interval, then two, four, up to L/2; half of
//     each wait is random. A store that refused at once is asked after a quarter of an interval,
//     a half, and so on. This also holds before the first answer. Towards the end
//     of a lease, and with a degraded share, the wait is shorter.
//   - From 64 processors on, shares change only with regular syncs while intervals are
//     stretched: a second sync for each change would double the load.
//   - A request says by its deadline how long it may wait for the store (Request.Patience of
//     package driver): a quarter of the timeout for a processor that joins, half for one
//     without a share, three quarters for one that has a share to lose. Redis doesn't
//     carry out what comes later. There a processor that doesn't know the server's time yet
//     may wait longer, by the queue that its first request met. On NATS, where requests compete, joiners stop competing then,
//     wait longer between tries, and hold back while holders are overdue.
//
// The worst clocks stretch a lease to L x 1.0833/0.9167 = 1.18 L on the store's clock. A
// clock that was set adds up to one clamp: 1.43 L, which is less than 1.5 L.
//
// # The processor's side
//
//   - Requests have rising numbers. Only the answer to the newest request is taken.
//   - If the share that a request reported has ended since, the answer renews nothing. The
//     share is 0 and the next request follows at once.
//   - A request names each earlier one that got no answer, 32 at most. A processor with 32
//     of them repeats the newest one until it is answered.
//   - Local times are monotonic. A watchdog compares them with the wall clock, and ends the
//     lease of a machine that was suspended.
//   - A reduction below 5 % waits until somebody lacks room. In a frozen pool every
//     reduction waits, because nobody else could have it.
//   - A processor that leaves with debt, used above its estimates, first earns it by not
//     using its share. If that takes too long, the store is not told: the claim stays until
//     its removal.
//   - Calls in flight go on after they were granted. Their limiter puts a lower share in
//     force first, and then counts what is in use. The store gets the larger of both.
//
// # The store's side
//
// A step first moves the pool's logical clock, then removes silent rows, records the share
// in use, and grants what there is room for. Requests that are late, repeated, replaced or
// of a clone are told so. Package driver describes each step.
//
// A store may forget: it restarts empty, or falls back to an older copy. Requests show it,
// because they say what their senders have seen. The store then freezes the pool for one
// removal time: no share grows until every share that it has forgotten is over. A pool that
// is new to a store waits for the same reason, in case an earlier lease is still in use.
// The store skips this wait when it can prove that there is none.
//
// # Documents
//
// What all processors of a pool must know is a document: a name, a version, and a body of
// up to 4,096 bytes. A pool has at most 8. Stores know nothing of their contents. A request
// reports the versions that its sender has loaded, and an answer brings what differs. So a
// body travels only when it is news.
//
// A processor proposes a change with the version that it was made from. The store takes the
// first proposal and answers the others with what is on record. A document that the store
// has lost is given back by whoever holds the newest version. Store.Save changes a document
// from outside, on the same condition. Documents are no part of what keeps shares apart, so
// a freeze does not stop them.
//
// A note of up to 128 bytes is what each processor tells all others of itself.
//
// # The limit in force
//
// A share is a fraction of the limit in force. The processors work that out themselves, from
// the same documents and notes, so they agree. Stores do no arithmetic.
//
//   - The document "limit" overrides the configured limit. A processor that cannot read it
//     renews nothing until it can.
//   - Without an override the lowest limit that a live processor is configured with counts.
//   - The document "ramp" holds where a ramp stands. About once a second one of the
//     processors makes the next step and proposes the result.
//   - The document "backoff" holds how far refusals of the called service have lowered the
//     limit. Notes carry what each processor saw: accepted, refused, overloaded.
//
// What a processor leases to its limiter is share x limit in force / configured limit. A
// falling limit is looked up 200 ms ahead, so the pool never exceeds it. During the sync
// interval in which an override spreads, some processors still go by the one before.
//
// # Pauses
//
// The document "pause" lists what is paused: a tag (empty for all), the logical time of
// writing, how long the pause lasts, and a reason.
//
//   - A pause follows the pool's logical clock, so no wall clock shortens it, and it outlives
//     all processors. A pool that begins anew takes off the time in which it was empty.
//   - Of two pauses of a tag the later end counts. Resuming removes the pause and records
//     the version by which it did so, so that nobody gives the old pause back.
//   - A Pusher spreads the document at once. A pushed pause stops processors but resumes
//     none, and is dropped when an answer shows that the store does not have it.
//   - The version in force stands in a processor's note: its receipt. An answer renews
//     nothing before its documents are loaded, so a processor without a receipt has no share
//     by the end of its lease.
//
// # Permits
//
// A share of a low limit would be too little to use, and a strict limit cannot be divided at
// all. There the store reserves slots: moments on its clock, at least the limit's spacing
// apart, whoever asked. A permit is one slot.
//
//   - The pool begins to issue permits when spacing x live processors exceeds the interval,
//     or when a processor is strict. It ends when twice that product is below the interval.
//   - While it issues permits, no share is granted. The issuer is like one more processor:
//     its claim is what the claims of the others leave, and it reserves with a third or more.
//   - When issuing ends, no share grows until the newest slot is past and its validity over:
//     a tenth of the spacing, at least 250 ms and at most 2.5 s.
//   - Slots are not saved up, and lie no further ahead than the request allows. The newest
//     can be given back while nobody has reserved since.
//   - A freeze holds slots for another spacing, and for as long as slots lie ahead that the
//     store has forgotten. Each processor tells in its syncs how far its own lie ahead.
//
// # Deaths
//
// A claim of a dead process stays until its removal, unless somebody names the death. A
// request may name incarnations of its own ID whose processes are known to be dead, and the
// step takes their claims away.
//
// The proof is a lock that the kernel releases only when its holder dies; see Witness. The
// holder finds the will of the one before it: the incarnation and the requests that it had
// sent. A row whose newest request is not among these belongs to a clone, which may live; it
// keeps its claim. What the dead process owed is earned before its death is named. Naming
// the death of a live process breaks the bound: the store believes it.
//
// # Tags
//
// A limiter with quotas shares its limit among tags: tenants, models, keys. Two things hold over the whole pool:
//
//   - A total, and a budget, is a till: one number at the store for each tag. Each request draws for its tags what they
//     will use until a bit after the next answer. So no total is divided by the number of processors, and no budget is
//     counted twice. Package driver has the rules of tills.
//   - What is reserved, and who comes first, is policy (package internal/fairtags). Each processor tells in its row what
//     its busiest tags ask for. From the same roster all work out who should have which share, tags first, then
//     processors. A policy cannot break a bound.
//
// The processor's side of a till:
//
//   - What was drawn is void two intervals after the request was sent, by the monotonic clock.
//   - What would be over before the next request is given back by this one. It has left the limiter's hand before. It is
//     told until a request that says it is answered. What was drawn before the store forgot something, or in an earlier
//     incarnation, is not given back.
//   - Budget windows are worked out by the store's clock, as answers tell it. What is known to be spent is told by maximum.
//   - Tills serve once every live processor tells of its tags: older releases would write a record without them. Until
//     then, and with Degrade while the store is away, each processor gives a tag total x its own share; while it changes
//     over, lots of both kinds can be good for two intervals. With Stop nothing is granted two intervals after the store
//     was heard last.
//   - A processor whose row tells nothing new for two and a half intervals keeps its claim, and its demand counts no more.
//   - The tags of a pattern are one tag for the policy, and each has its own till.
//   - With an adaptive limit a limiter slows a tag down whose calls the service refuses (limit.TagReport.Limiting). The
//     processor asks for no more of it, and tells that the tag is slow. A tag that is slow wherever it asks for something
//     is limited to the sum. What is reserved for it and told nowhere else a processor still asks for, and what the plan
//     guarantees it here (limit.TagGrant.Reserved) the limiter does not go below.
//
// The document "quota" changes quotas while they are in use: SaveQuota. One that cannot be read changes nothing, but a till
// that knows a newer version gives nothing by an older one.
//
// The document "spent" lists the newest changes of what is spent of budgets: SetSpent. The number itself is changed in the
// till, before the document. By the document each processor forgets what it has seen above it, once; the answer that
// brings it tells at least the new number.
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
//	the same, with a Witness         the old claim is free at once              first answer
//	processor stalled past its lease draws nothing when it goes on; without     its next answer
//	                                 the store, when stalled for 0.6 leases
//	machine suspended                lease voided by the watchdog               its next answer
//	cloned machine                   incarnation closed, both start anew;       removal
//	                                 within one lease both may draw (one more
//	                                 if the store falls back meanwhile)
//	two processes with one ID        the newer wins, the older draws nothing    removal
//	one processor cut off            lease ends; Stop: draws nothing,           its next answer
//	                                 Degrade: min(last share, 1/live)
//	store down, state kept           leases end; then as above                  first answer
//	store wiped or failed over       holders keep their shares, none grows;     removal of the longest lease
//	                                 they give documents back
//	store back by over 1,024 syncs   all start anew                             removal of the longest lease
//	store restarted with its state   as wiped, unless it is known to have       removal of the longest lease, or
//	                                 forgotten nothing                          first answer
//	store clock is set               counts as no time, or one clamp at most    nothing to heal
//	request lost, repeated, late     sequence numbers make it harmless          next sync
//	news of a pause lost             it counts from the next sync on            nothing to heal
//	store down when a pause is made  who paused and who heard it have stopped;  its end
//	                                 it is recorded when the store answers
//	store wiped during a pause       holders give it back, on the new clock     its end
//	pool empty during a pause        what it slept is taken off                 its end
//	pool killed whole in a pause     the time until somebody joins is added     its end, or Resume
//	called service can do less       adaptive: all use less together            about 10 s after it is back
//	store down while it can          each processor uses less of its share      the same
package consensus
