// Package driver is for authors of a store: a seam for third-party stores, without a promise of stability. It may change in any release, and
// a store is to be built against one version. Users of a pool need only a finished store, such as those in packages memstore, redisstore and
// natsstore.
//
// A store implements [Store]. It keeps one [Record] per pool and changes it in atomic steps, here under a lock:
//
//	func (s *store) Sync(ctx context.Context, req driver.Request) (driver.Answer, error) {
//		if err := cmp.Or(req.Validate(), ctx.Err()); err != nil {
//			return driver.Answer{}, err
//		}
//		s.mu.Lock()
//		defer s.mu.Unlock()
//		rec := s.pools[req.Pool]
//		if rec == nil {
//			rec = &driver.Record{}
//			s.pools[req.Pool] = rec
//		}
//		ans, _ := rec.Sync(&req, driver.At{Now: time.Now().UnixMicro()})
//		return ans, nil
//	}
//
// # How to write a store
//
// There are two ways:
//
//   - Keep the record as bytes ([Record.AppendBinary], [ParseRecord]) and write it with a lock or a compare-and-set. Each step reads the
//     record, calls [Record.Sync], [Record.Leave], [Record.Reserve] or [Record.Save], and writes the record back. Package memstore is the
//     shortest example, package natsstore the one with a compare-and-set.
//   - Do the same steps in the language of the server, and compare the results with a [Record] in a test. Package redisstore does so in Lua.
//
// [At] describes the moment of a step: the store's clock, the identity of the server, and for how long the store is known to have forgotten
// nothing. Each method of a store first validates its request; the errors of [Request.Validate] and the like name the field, its value and
// the allowed values. Package [github.com/numaproj-contrib/numathrottle/pkg/consensus/storetest] has the conformance suite, which every store
// passes.
//
// A store may do more: list its pools ([Lister]), push news ([Pusher]), and show or set the spending of tags ([TagBucketReader], [TagBucketSetter]).
//
// The rest of this page is the step. Package consensus describes the protocol as a whole.
//
// # The record
//
// There is one record per pool. It holds the identity of the server that wrote it, a revision, the logical clock, the freeze and the pool's
// lease. It also holds the documents, the tag buckets, the data on names, and a row per incarnation of a processor. The protocol never deletes a
// record.
//
// A row outlives its incarnation by one removal time. A replaced incarnation gets no more answers, but its process may still draw. A
// processor that left leaves a tombstone, because its packets may still arrive.
//
// # One sync
//
// A request identifies its sender: ID, incarnation, sequence number, and a nonce drawn for this request alone. It reports the sender's
// memory: number, nonce and logical time of the last answer taken, the requests sent since, and the newest revision seen. It also reports
// what the sender uses, wants and could use. [Record.Sync] does the following.
//
//  1. Clock. The logical clock follows the store's clock, never backwards. A gap beyond the clamp counts as no time: a pause of the whole
//     pool cannot be told from a clock that was set.
//  2. Sender. A request older than the newest one recorded is late and changes nothing. The same number and nonce is a repeat and gets the
//     same answer. A request comes from a clone if its number is recorded with another nonce, or if its process has not sent the newest one
//     recorded. A clone's incarnation is closed. Its claim stays until removal, and both processes go on under new incarnations. A new
//     incarnation closes the older ones of its ID.
//  3. Behind. If the sender's last answer is newer than the row, the store has gone back, or the row is a clone's. The pool freezes, the
//     facts count beside the row's claim, and the answer names the newest request of the row. A processor that has sent that one asks again
//     and says so. Any other starts over under a new incarnation.
//  4. Removal. Rows silent for longer than the removal time are removed, with their claims.
//  5. Memory. The store has forgotten something if there is no record, if another server wrote it, if it is older than a revision that the
//     sender has seen, or if the sender's row is missing too early. The pool then freezes for one removal time of the longest lease that a
//     processor may have, and the revision rises above both. A memory store never freezes: its processors die with it. A store that knows
//     that the pool is new ([At.Remembers]) does not freeze it either.
//  6. Facts first. The share in use becomes the claim, even if the sum rises above one.
//  7. Room. Room is one less all other claims, at least 0. A frozen pool answers min(in use, room), another one min(wanted, room). The
//     claim is the larger of the share in use and the answer: a lower share counts only once it is reported as in use.
//  8. Tag buckets serve the draws of the request; see below.
//  9. Documents. A body is taken if its version is above the one on record, and it was made from the version on record or is given back
//     (see [DocumentReport]).
//  10. Answer. Share, roster, pool size, logical time, revision, the pool's lease, the documents that differ from those reported, the
//     beginning of the pool, the tokens drawn, and the store's own clock.
//
// A store that learns the time of a write only afterwards, such as JetStream, lets each step stamp what the one before recorded
// ([At.Deferred]).
//
// # When a pool begins
//
// A pool begins when a processor joins while no other is live. The answer gives this moment on the logical clock, and for how long no step
// had been recorded before, on the store's own clock. A store that has forgotten something does not know, and answers 0 until the pool
// begins again. A pool in which all have died goes on until their rows are removed.
//
// # Documents
//
// A version counts changes, with random bits below, so that changes made apart differ. It falls only when the record is lost. Then the
// holder of the newest body gives it back with its next request. A refused request brings no documents and gets none. A repeat brings none
// and gets those on record now. Documents outlive all rows.
//
// # Permits
//
// [Record.Reserve] reserves slots for permits; the package documentation of consensus says when a pool issues them. The largest spacing that
// any request named within a removal time counts. A spacing from a document of the pool counts at once if its sender has loaded the newest
// version. The spacing in force is that of the whole limit, divided by the permits' claim. A clock step below the clamp counts as time and
// brings two permits that much closer.
//
// # Tag buckets
//
// A tag bucket keeps one number for a tag with a quota: Paid, the logical time up to which the tokens of its total are given out. Any processor
// draws from it with its sync, ahead for one interval h (Interval, by the lease and the number of rows). A draw is good for two intervals
// of the processor from the send of the request. A processor that was stopped for longer holds nothing.
//
//   - Draw. Paid rises by the cost of tokens owed, and is at least the logical clock less the cost of the burst. Then the tag bucket gives the
//     tokens asked for, as far as the time left until h after the clock and the rest of each budget allow. n tokens cost n x Per / Total,
//     rounded up to microseconds, in doubles.
//   - A draw with Ahead is served as a whole or not at all. If it cannot be served at once, it is reserved: it can be used when all of it
//     is earned, in turn with those of others. A processor drops its reservations when an answer says that a freeze has begun.
//   - Tokens given back count only if the newest request on record is the one whose answer was taken last, nothing has been forgotten
//     since, and the store is not held. So they count once, and for budgets alone: what a total earned in a quiet hour could else be handed
//     on forever. Tokens owed always count, twice at worst. Requests that are late, repeated or refused draw nothing. The tokens that a
//     repeated request drew the first time are lost.
//   - Freeze. From the beginning of a freeze on all tag buckets are held for 1.19 times as long as a draw is good, because clocks run apart. The
//     interval is the longest possible if nothing is known of the pool before, else that of twice the rows on record. Meanwhile nothing is
//     given or earned. A budget counts the largest of the amounts spent on record and seen by processors. All this follows from
//     FrozenUntil.
//   - Budgets. The processors work out the windows from [Answer.Wall]. A tag bucket counts the tokens spent since the start of each window that it
//     knows, and gives nothing while the store's own clock is outside a window of the draw. It keeps a window for ten minutes after its
//     end.
//   - An operator can set the amount spent in a window ([Record.SetSpent]), up or down; nothing else changes. The amounts that processors
//     have seen stay with them, and count in the next freeze.
//   - Versions. A request by an older version of the quotas than the tag bucket has seen draws nothing.
//   - There are at most 2,048. A new one starts empty. A full table drops the tag bucket that has been full for longest and has no budget in a
//     window that lasts, because a new one would give no more. If there is none, the answer is [LackFull], and nothing of the draw counts.
//   - Tags that go by a pattern ([Draw.Pattern]) have their tag buckets in Names, at most 4,096. When these are taken, full tag buckets are dropped,
//     then all others that the request does not draw from. A dropped tag bucket raises cells of two sketches to the amounts that it had given out
//     and spent: to a maximum, never a sum. A new tag bucket begins with the least of its cells, and without any as if it had always been there:
//     never with more than the name may have. A draw by the name of the tag moves a copy of its tag bucket to TagBuckets.
//
// So in any time W of the pool's clock, processors use at most Total x (W + h + two intervals) / Per tokens, plus the burst and the largest
// reservation.
//
// # Slots of tags
//
// A quota on calls in flight is a number of slots, which are a state and not a flow: a tag bucket cannot count them. Each row holds, for each of
// its tags, how many slots are in use and how many were granted ([TagClaim]). The rules are those of the share, tag by tag:
//
//   - Facts first. The slots reported in use are claimed, even if the sum rises above the total.
//   - Room is the total less the claims of all other rows, at least 0. A row that is not live counts until its removal. A frozen pool grants
//     min(in use, room), another one min(wanted, room). The claim is the larger of the slots in use and those granted.
//   - Less before more. InUse counts the slots in which the sender may still begin a call before it takes the answer. So a sender that wants
//     fewer first begins no calls in the rest, then reports fewer in use, and only then others get them. A tag that a request does not name is
//     not claimed any more.
//   - The grant may be below what is in use: after a freeze, or when the total was lowered. The sender then begins no call until so many have
//     ended. Claims would otherwise stay above the total for as long as each call that ends makes room for the next one.
//   - Versions. A sender that has not loaded the newest version of the document with its totals ([Report.TagSlotsBy]) is granted no more than is
//     in use: its total may be too large by now.
//   - Wherever a row's share is kept, freed or counted beside facts, its slots are, too: a lease, a leave, a death, a clone, a store that is
//     behind.
//
// So the slots granted and used of a tag add up to at most its total, unless the total was lowered, or a processor used slots that the store
// had forgotten. An answer tells what all others claim and could use of each tag, so that a policy can divide the total by the demand while it
// asks for less itself. It does not tell who: that would be rows times tags.
//
// # Deaths
//
// A request may name dead incarnations of its own ID ([Request.Dead]). Their claims end with the step that records the request. Their rows
// stay, so that late packets are refused. A row whose newest request the dead process did not send is that of a clone: it is closed and
// keeps its claim.
package driver
