// Package consensus divides one limit among the processors of a pool, so that
// the shares in use never add up to more than the whole, whatever happens to
// processors, network and store.
//
// # Words
//
// A pool is the processors that share a limit. A processor has an ID and an
// incarnation: a restart under the same ID is another incarnation. A share is
// the fraction of the limit that a processor may use; its claim is the share
// that the store has on record for it; its lease is how long a share is good for
// without another sync. The pool size is the number that a processor divides by;
// there is consensus (AGREE) when every live processor reports the same pool
// size and it equals their number, else DISAGREE with the largest.
//
// # What is guaranteed
//
// At every instant the sum of all shares in use is at most one, while processors
// join, leave, crash, restart under the same ID, stall, are cut off, while
// packets are lost, late, repeated and reordered, and while the store restarts
// empty, fails over to an older copy, or its clock jumps. With StoreLoss Stop it
// holds without exception; with Degrade (the default) it holds while the store is
// down for all, and while k of n processors alone are cut off the pool may use
// up to 1 + k/n. That n is the pool size that they saw last: one that was cut off while it
// was alone goes on with the whole limit, whoever joins after that. Such a share rests on
// the requests that the processor goes on sending: one that is stopped for 0.6 leases draws
// nothing until the store answers, for others may have its share by then. Shares with the
// store's consent never add up to more than one.
//
// It rests on: clocks that run at most 8.33 % fast or slow (chrony's default
// limit); store clocks that are set by less than the clamp (a quarter of a lease)
// at most once per removal time, and by more as often as you like; a suspended
// machine whose wall clock runs on. It does not cover a permit that a thread holds
// between the check and the call, nor a cloned machine within one lease of the
// cloning, or of a fallback of the store to an older record in that time: the store has
// forgotten by then what one of both had told it.
//
// # Who decides what
//
// The store enforces safety in one atomic step; the processors decide policy.
// Record.Sync is the store's step as a pure function, Processor the processor's
// side. Both are without clock, I/O and goroutines, so that the simulation runs
// the very code that is shipped. Member is the thin shell around a Processor;
// the stores are shells around Record.Sync, or do the same in their own language
// and are compared with it.
//
// # The record
//
// One record per pool: identity of the server that wrote it, revision, logical
// clock, freeze, the pool's lease, and rows keyed by ID and incarnation with an
// entry for each tag: claim, share in use, share answered, demand, pool size, note;
// and the documents. A row outlives what it describes by one removal time: a replaced
// incarnation gets no more answers, but its process may still draw; a processor that
// left leaves a tombstone, because its packets may still arrive. The record itself is
// never deleted by the protocol.
//
// # One sync at the store
//
// The request says who asks (ID, incarnation, sequence number, a nonce drawn for
// this request alone), what the sender remembers (number, nonce and logical time
// of the answer taken last, numbers and nonces of the requests sent since, newest
// revision seen), and for each tag the share in use, the share wanted, the demand
// and the pool size.
//
//  1. Clock. The logical clock follows the store's, never backwards. A gap beyond
//     the clamp (a quarter of a lease) counts as no time: a pause of the whole pool
//     cannot be told from a clock that was set.
//  2. Late, repeated, replaced, cloned. A request older than the newest recorded
//     is late and changes nothing. The same number and nonce is a repeat and gets
//     the same shares. The same number with another nonce, or a request of a
//     process that has not sent the newest one recorded, comes from a clone: the
//     incarnation is closed, its claim stays until removal, and both processes go
//     on under new incarnations. A new incarnation closes the older ones of its ID, with their claims unless
//     it names their death; see below.
//     If the sender's last answer is newer than the row, the store has gone back, or
//     the row is a clone's: it freezes, counts the sender's facts beside the row's
//     claim, and asks by naming the newest request of the row. A processor that has
//     sent that asks again and says so; another one starts anew.
//  3. Removal of rows that were silent for longer than the removal time (one and
//     a half leases), with their claims.
//  4. Memory. A new record, another server identity, a record older than a
//     revision that the sender has seen, or a row that is missing or older than
//     the sender's last answer, though it cannot have been removed since: the
//     store has forgotten something. It freezes for one removal time of the
//     longest lease that a processor may have, and the revision rises above both.
//     A memory store does not freeze: its processors die with it. Nor does a store
//     that knows that the pool is new (see At.Remembers).
//  5. Facts first. The share in use is recorded as the claim, even when the total
//     is above one.
//  6. Room. For each tag, room = 1 - every other claim, the sender's own other tags
//     included, never below 0. Frozen: answer = min(in use, room), else
//     min(wanted, room). Claim = max(in use, answer): a lower share counts only
//     once it is reported as in use.
//  7. Documents. Of those that the request brings, the ones that take the place of
//     what is on record; see below.
//  8. Answer. Shares, roster, consensus, logical time, revision, the pool's lease,
//     documents, and when the pool began.
//
// A store that learns the time of a write only afterwards (JetStream) lets the
// next step stamp what this one recorded; see At.Deferred.
//
// # Documents
//
// What all processors of a pool must know, such as an override of the limit, where
// its ramp stands or what is paused, is a document: a name, a version and a body of at most 4,096
// bytes, at most 8 per pool. A note, of at most 128 bytes, is what each processor tells
// all others of itself; the roster shows it. Stores know nothing of what either says,
// so that what may be said grows without them: all arithmetic is the processors'.
//
// A request reports which version of each document its sender has loaded, and may
// bring a body with another one. The answer tells what is on record of every document
// for which that is not exactly what the request said, including that nothing is. So
// a sync moves a body only when it is news, and a sender whose document is not
// mentioned knows that it is on record.
//
// A body is taken when its version is above the one on record, and it was made from
// the version on record (a change: of two that were made apart the first one is
// taken, and the answer to the other tells so) or is what its sender had loaded (given
// back: the store has lost it). A version counts the changes, with random bits
// below, so that changes made apart have different versions. A version on record never
// falls but with the record itself, and then whoever holds the newest gives it back with
// the next request after it was told.
//
// Documents are no part of what keeps the shares apart, and need no freeze: they are
// exchanged in a frozen pool, too. A request that is refused brings none and is told
// of none; a repeat brings none and is told what is there now. They outlive all rows.
// Store.Save changes one from outside, on condition of its version, in a pool that has
// a record; Store.Load shows them, with the roster. On a store that learns the time of a write only afterwards
// saving stamps what the last step recorded, as every step does, for it takes the place of that write.
//
// The answer also tells when the pool began, that is when a processor joined while
// no other was live, and for how long no step had been recorded before: the store's
// clock tells, for the logical one counts a gap beyond the clamp as no time. A pool in
// which all have died without leaving goes on until their rows are removed. A store
// that has forgotten something does not know the beginning, and says so (0), until the
// pool begins anew.
//
// # Permits
//
// A strict limit is not divided, and neither is one that earns less than a token per
// processor and sync interval: a share of it would be too little to use. There the store
// issues permits. A permit is a slot: a moment on the logical clock, reserved in the record, at
// least a spacing after the slot before it, whoever asked. The issuer is like one more row: its
// claim is what the processors' claims leave of the whole, and the spacing in force is that of
// the whole limit divided by the claim.
//
//   - Processors name the spacing of their limit in each sync, and whether it is strict. The
//     largest spacing that was named within a removal time counts; but one by a document of the
//     pool, an override, counts at once, if the sender has loaded the newest version: what others
//     name instead counts only until they have loaded it, too. Issuing begins when
//     spacing x live processors is above the interval between two syncs, and ends when twice that
//     product, for all rows, is below it; a strict processor keeps it going. A processor that
//     names no spacing can use nothing but shares, and keeps the pool from issuing unless it is strict.
//   - While permits are issued no share is granted. Claims fall as shares are given up, and
//     the issuer's claim grows. With less than a third nothing is reserved.
//   - When issuing ends, no share grows until the newest slot is past and its validity over: a
//     tenth of the spacing, at least 250 ms and at most 2.5 s.
//   - A slot is never before the time of the step that reserves it, so nothing is saved up, and
//     no further ahead than the request allows. The newest slots can be given back while nobody
//     has reserved since.
//   - What makes a pool freeze holds the slots, too: until the freeze is over, for a spacing, and
//     for as long again as the processors' slots lie ahead, of which each says in its syncs how
//     far its own do. One that does not sync during the freeze has no lease at its end, and what
//     was reserved ends with the lease.
//   - Spacing is kept on the store's clock. A step of that clock by less than the clamp
//     is taken for time, and brings two permits that much closer.
//
// # One sync at the processor
//
//   - Numbers rise, and only the answer to the newest request is taken. If the
//     share that this request reported has lapsed since, nothing is renewed: the
//     share is 0 and the next request follows at once.
//   - A request names every one before it that was not answered. With as many as it
//     can name (32) a processor repeats the newest until that is answered; the answer
//     is too old to rest on, and lets it go on.
//   - The lease runs from the first send of the request, on the local monotonic
//     clock. A watchdog compares wall and monotonic clock and voids the lease of a
//     machine that was suspended.
//   - A lower want takes effect at once and is reported at once; a higher one takes
//     effect when granted. A reduction below 5 % waits unless somebody lacks room, and
//     every one waits while the pool is frozen.
//   - A processor that leaves with debt, used above its estimates, earns it first by
//     not using its share. When that would take longer than it has, the store is not
//     told, and the claim is removed in its time.
//   - Without the share it wants, a processor asks again at the fast interval
//     (a tenth of the interval) while others hold more than they should.
//   - The pool's lease, in the answer, counts; a processor configured with another
//     takes it over.
//
// Timing follows from the lease L alone (10 s by default): removal 1.5 L, clamp
// L/4, interval L/10 stretched to at most L/4 so that a pool syncs at most a
// hundred times a second, as long as it has no more than 25 processors for each second of its
// lease (250 at the default); a larger one syncs four times a lease for each. With clocks 8.33 % apart in the worst directions, a
// lease is over after L x 1.0833/0.9167 = 1.18 L on the store's clock, and 1.43 L if
// that was set by up to a clamp meanwhile, before the row is removed at 1.5 L.
//
// # The limit in force
//
// A share is a fraction of the limit, whatever that is at the moment. How many tokens
// the whole pool may use, its ceiling, the processors work out for themselves, from what
// every answer brings; stores do no arithmetic, and no claim depends on it.
//
//   - The document "limit" overrides the limit: {"max":300,"per":"1m0s"}, with max 0 for
//     none. A processor uses it from the answer that brings it. One that cannot read it renews
//     nothing until it can.
//   - Without an override the lowest limit of all live processors is in force. Each tells its
//     own in its note, with the rates that it used and was offered lately if it ramps: a form, whether the
//     limit is hard, Max, Per in microseconds, used and offered in 1e-9 of Max.
//   - The document "ramp" holds where the ramp stands: a form, Answer.Began, and the state of
//     package internal/ceiling/ramp. When about a second has passed since the last step, whoever asks
//     next makes one and proposes what comes of it; the store takes the first. A pool that has
//     begun anew (another Began) starts the ramp anew or resumes it; a state whose time is far
//     from the present, of another store's clock, goes on from where it stood.
//   - The document "ceiling" holds how far the called service's refusals have lowered the limit
//     in force, where limits are adaptive: a form, Answer.Began, and the state of package
//     internal/ceiling/backoff. A processor's note then tells what the service makes of its calls, in a word "r:" after
//     the others: the number of cuts that the refused ones were granted under, and what was
//     accepted, refused and overloaded. Refusals that the others do not know bring the next request
//     forward, five at most until the next cut. Whoever finds a cut due proposes it.
//   - What a store has lost the holders give back with their next request, sent at once.
//
// A processor tells the logical time from its last answer and its own clock, and what it
// leases to its holder is share x ceiling / configured limit, looked at every 100 ms: by the
// ceiling of now when that rises, by that of 200 ms later when it falls. So the effective
// shares of a pool add up to its ceiling at most; in the sync interval in which an override
// spreads, some go by the one before.
//
// A holder whose calls go on after they were granted (throttle.InFlight) yields first: the
// lower share is in force before it is asked what is in use. The larger of both is reported
// in use, so that the claim falls only when calls have ended. In a frozen pool, whose answer
// is what was reported, no more than the lease had becomes the share.
//
// # Pauses
//
// The document "pause" says what is paused: for each tag (the empty one is everything) the logical
// time of writing, how long it went on then, and a reason. Of two pauses of a tag the later end
// counts; resuming takes one out, and notes by which version. A processor stops with the answer that
// brings it.
//
//   - How long a pause goes on follows the logical clock, so that it outlives all processors and no
//     wall clock shortens it. A pool that begins anew takes off what it has slept. Where
//     that clock has lost time, a processor that was there goes by its own, and writes the document
//     anew; one that is given back to a store that lost it is written on the clock of the new record.
//   - A store that is a Pusher carries news: whoever pauses pushes the document, and saves it at the
//     same time; a pause for a refusal from before a Resume must not stop anybody, so one that says since when it is
//     good is saved first. News that are newer than what is on record stop whoever hears them, resume nobody,
//     and are forgotten when an answer to a request of a second later shows nothing of them.
//   - The version that a processor goes by stands in its note, behind what it tells of its limit:
//     its receipt. It is also pushed, at once. Nothing is renewed by an answer whose documents are not
//     loaded, so that one without a receipt has no share by the end of its lease.
//   - Whoever has paused proposes the pause again while it goes on and is not on record, unless
//     somebody has resumed by a later version than it knew. So does whoever goes by a pause that is
//     missing from the next document, which a store that fell back may have been given.
//   - Whoever gives this document back that the store has lost does so only in the place of what the last answer showed
//     there, and takes over of that the pauses that nobody has ended since: who has paused may be gone, or replaced, before it
//     could tell its pause again.
//
// # Deaths
//
// A process that leaves tells the store; one that dies cannot, and its claim stays, for the store cannot tell
// death from silence. Whoever can names the death: a request names incarnations of its own ID (Request.Dead) whose
// processes are known to be dead, and the step that records it takes their claims away, as a leave does.
//
//   - The proof is a lock that the kernel takes from a process at its death, and nothing else does (a Witness). Who holds
//     it finds the wills of those who held it before: each tells its incarnation and the requests that it had sent, and
//     is put down before the newest of them goes out. A second live process under the ID does not get the lock, and
//     finds nothing. So does whoever comes in another place: then the claim stays for a removal time.
//   - The row stays until its time, without a claim, so that late packets are refused. A late Reserve is of nobody: it
//     reserves slots that nobody uses. Slots that the dead process had reserved are lost, as with every death, and the
//     next come after them.
//   - A row whose newest request is none that the will tells of is that of a clone, which may live. It is closed as such, and keeps
//     its claim, as does one that was closed before: the death of one proves nothing of the other.
//   - What the dead process owed is earned first, by not using the claim: its death is named only then.
//   - A death is named until the store has granted a request that names it. A store that falls back to before that has
//     the claim again, but freezes for as long as the claim can be there.
//   - The next process begins with an empty bucket. So a takeover adds to the bound what any processor that held a share
//     does: one token, or the largest single draw. What the dead one had drawn before it died may still be under way.
//
// Whoever names the death of a process that lives breaks the bound: the store believes it.
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
