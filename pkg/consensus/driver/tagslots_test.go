package driver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A slotPool is a record, and processors that report slots of tags. The pool is not frozen at first.
type slotPool struct {
	*testing.T
	rec   Record
	at    At
	lives map[string]*slotUser
}

func newSlotPool(t *testing.T) *slotPool {
	t.Helper()
	return &slotPool{
		T: t, at: At{Now: 1_795_000_000_000_000, Identity: "server 1", Remembers: remembers, Longest: longest}, lives: map[string]*slotUser{},
	}
}

// request returns the next request of a process named by its ID and incarnation, such as a1.
func (p *slotPool) request(name string, slots ...TagSlots) Request {
	u := p.lives[name]
	if u == nil {
		u = &slotUser{id: name[:1], incarnation: name[1:], lease: longest}
		p.lives[name] = u
	}
	u.seq++
	req := Request{
		Pool: "p", ID: u.id, Incarnation: u.incarnation, Seq: u.seq, Nonce: u.seq * 7, Lease: u.lease, LastSeq: u.last.Seq, LastNonce: u.last.Nonce,
		LastTime: u.last.Time, Revision: u.last.Revision, Unanswered: slices.Clone(u.open), Report: Report{TagSlots: slots},
	}
	u.open = append(u.open, Ticket{req.Seq, req.Nonce})
	return req
}

// send makes a step with a request, and takes the answer.
func (p *slotPool) send(req Request) Answer {
	p.Helper()
	require.NoError(p, req.Validate())
	before := copyOfValid(p, &p.rec)
	ans, changed := p.rec.Sync(&req, p.at)
	if changed {
		requireTagClaims(p.T, before, copyOfValid(p, &p.rec), &req, &ans)
	}
	require.NoError(p, ans.Check())
	if u := p.lives[req.ID+req.Incarnation]; ans.Status == Granted {
		u.last, u.open = ans, nil
	}
	return ans
}

// copyOfValid is the record by way of its binary form, if it has one.
func copyOfValid(p *slotPool, r *Record) *Record {
	if r.Revision == 0 {
		return &Record{}
	}
	return copyOf(p.T, r)
}

// slots syncs with a report on one tag with a total of 10, and returns the grant.
func (p *slotPool) slots(name string, inUse, wanted int64) int64 {
	p.Helper()
	ans := p.send(p.request(name, tag(1, inUse, wanted)))
	require.Equal(p, Granted, ans.Status)
	return ans.TagSlots[0].Granted
}

// tag is a report on a tag with a total of 10 and a demand of 100.
func tag(key uint64, inUse, wanted int64) TagSlots {
	return TagSlots{Key: key, InUse: inUse, Wanted: wanted, Demand: 100, Total: 10}
}

// claim is what a row claims of tag 1; -1 if there is no row.
func (p *slotPool) claim(name string) int64 {
	i, ok := p.rec.find(RowKey{name[:1], name[1:]})
	if !ok {
		return -1
	}
	if k, ok := findTagClaim(p.rec.Rows[i].TagClaims, 1); ok {
		return p.rec.Rows[i].TagClaims[k].Claim()
	}
	return 0
}

// leave makes a process leave.
func (p *slotPool) leave(name string) {
	u := p.lives[name]
	l := Leave{Pool: "p", ID: u.id, Incarnation: u.incarnation, Seq: u.seq + 1, LastSeq: u.last.Seq, LastNonce: u.last.Nonce, Unanswered: u.open}
	require.NoError(p, l.Validate())
	require.True(p, p.rec.Leave(&l, p.at))
}

// wait lets time pass, in which b1 keeps the clock running.
func (p *slotPool) wait(d time.Duration) {
	for ; d > 0; d -= time.Second {
		p.at.Now += micros(min(d, time.Second))
		p.send(p.request("z1"))
	}
}

func TestTagSlots(t *testing.T) {
	for name, play := range map[string]func(p *slotPool){
		"what is granted leaves no room for others": func(p *slotPool) {
			require.EqualValues(p, 7, p.slots("a1", 0, 7))
			require.EqualValues(p, 3, p.slots("b1", 0, 10))
			require.EqualValues(p, 7, p.slots("a1", 7, 10), "there is no more")
		},
		"less is free only once less is in use": func(p *slotPool) {
			p.slots("a1", 0, 10)
			require.EqualValues(p, 4, p.slots("a1", 10, 4))
			require.EqualValues(p, 10, p.claim("a1"))
			require.Zero(p, p.slots("b1", 0, 10))
			p.slots("a1", 4, 4)
			require.EqualValues(p, 6, p.slots("b1", 0, 10))
		},
		"facts count, and whoever uses too many is told to use fewer": func(p *slotPool) {
			p.slots("b1", 0, 5)
			require.EqualValues(p, 5, p.slots("a1", 8, 8))
			require.EqualValues(p, 8, p.claim("a1"))
			require.EqualValues(p, 2, p.slots("b1", 5, 5), "also those who do no wrong")
			require.Zero(p, p.slots("c1", 0, 5), "room is never below nothing")
		},
		"slots used beyond the total come down, though each processor takes what it may": func(p *slotPool) {
			a, b := int64(10), int64(10) // as after a loss
			for range 3 {
				a = p.slots("a1", a, 10)
				b = p.slots("b1", b, 10)
			}
			require.EqualValues(p, 10, a+b)
		},
		"a tag that is not named is free": func(p *slotPool) {
			p.slots("a1", 0, 10)
			p.send(p.request("a1", tag(2, 0, 3)))
			require.EqualValues(p, 10, p.slots("b1", 0, 10))
		},
		"each tag has its own room": func(p *slotPool) {
			p.send(p.request("a1", tag(1, 0, 9), tag(3, 0, 4)))
			ans := p.send(p.request("b1", tag(1, 0, 9), tag(2, 0, 9), tag(3, 0, 9)))
			require.Equal(p, []TagGrant{{1, 1, 9, 100}, {2, 9, 0, 0}, {3, 6, 4, 100}}, ans.TagSlots)
			require.Nil(p, ans.Roster[0].TagClaims, "that would be rows times tags")
			_, roster, err := p.rec.Load()
			require.NoError(p, err)
			require.Equal(p, []TagClaim{{1, 0, 9, 100}, {3, 0, 4, 100}}, roster[0].TagClaims)
			require.Equal(p, []TagClaim{{1, 0, 1, 100}, {2, 0, 9, 100}, {3, 0, 6, 100}}, roster[1].TagClaims)
			roster[0].TagClaims[0] = TagClaim{}
			require.EqualValues(p, 9, p.claim("a1"), "it shares no memory with the record")
		},
		"who is not live claims slots, and has no demand": func(p *slotPool) {
			p.slots("a1", 0, 6)
			p.send(p.request("a2"))
			require.Equal(p, []TagGrant{{1, 4, 6, 0}}, p.send(p.request("b1", tag(1, 0, 10))).TagSlots)
			require.Equal(p, []TagGrant{{1, 0, 10, 100}}, p.send(p.request("a2", tag(1, 0, 10))).TagSlots)
		},
		"without a total there is no bound": func(p *slotPool) {
			unbounded := TagSlots{Key: 1, Wanted: wire.MaxTokens, Demand: 1}
			for _, name := range []string{"a1", "b1"} {
				require.EqualValues(p, wire.MaxTokens, p.send(p.request(name, unbounded)).TagSlots[0].Granted)
			}
		},
		"a repeat is answered as before, and changes nothing": func(p *slotPool) {
			req := p.request("a1", tag(1, 0, 4), tag(2, 0, 4))
			first := p.send(req)
			p.slots("b1", 0, 3)
			require.Equal(p, []TagGrant{{1, 4, 0, 0}, {2, 4, 0, 0}}, first.TagSlots)
			require.Equal(p, []TagGrant{{1, 4, 3, 100}, {2, 4, 0, 0}}, p.send(req).TagSlots)
			require.EqualValues(p, 3, p.slots("c1", 0, 10))
		},
		"whose totals are out of date gets no more than is in use": func(p *slotPool) {
			sync := func(name string, version Version, total int64, body string) int64 {
				req := p.request(name, TagSlots{Key: 1, InUse: 2, Wanted: 8, Demand: 8, Total: total})
				req.TagSlotsBy = "quotas"
				req.Documents = []DocumentReport{{Name: "quotas", Version: version, Base: version - min(version, 1), Body: []byte(body)}}
				return p.send(req).TagSlots[0].Granted
			}
			require.EqualValues(p, 8, sync("a1", 0, 9, ""), "there is none")
			require.EqualValues(p, 8, sync("a1", 1, 9, "x"), "it brings the newest")
			require.EqualValues(p, 2, sync("a1", 0, 9, ""))
			require.EqualValues(p, 8, sync("a1", 1, 9, ""))
			require.EqualValues(p, 2, sync("b1", 0, 99, ""))
			require.EqualValues(p, 1, sync("b1", 1, 9, ""))
		},
		"an answer shares no memory with the record": func(p *slotPool) {
			req := p.request("a1", tag(1, 0, 4))
			ans := p.send(req)
			ans.TagSlots[0], req.TagSlots[0] = TagGrant{}, TagSlots{}
			require.EqualValues(p, 4, p.claim("a1"))
		},
	} {
		t.Run(name, func(t *testing.T) { play(newSlotPool(t)) })
	}
}

// What happens to a row's share happens to its slots.
func TestTagSlotsOfRowsThatEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(p *slotPool)
		want int64 // what is left for others at once
	}{
		"who has left claims nothing":     {func(p *slotPool) { p.leave("a1") }, 10},
		"who is replaced claims the same": {func(p *slotPool) { p.send(p.request("a2")) }, 4},
		"who is silent claims the same":   {func(p *slotPool) { p.wait(wire.Removal(longest)) }, 4},
		"who is removed claims nothing":   {func(p *slotPool) { p.wait(wire.Removal(longest) + time.Second) }, 10},
		"the dead claim nothing": {func(p *slotPool) {
			req, u := p.request("a2"), p.lives["a1"]
			req.Dead = []Death{{Incarnation: "1", Last: Ticket{u.last.Seq, u.last.Nonce}}}
			p.send(req)
		}, 10},
		"a clone that dies claims the same": {func(p *slotPool) {
			req := p.request("a2")
			req.Dead = []Death{{Incarnation: "1", Unanswered: []Ticket{{1, 1}}}}
			p.send(req)
		}, 4},
		"clones claim the same": {func(p *slotPool) {
			req := p.request("a1", tag(1, 6, 6))
			req.LastNonce, req.Unanswered = 1, nil
			require.Equal(p, Cloned, p.send(req).Status)
		}, 4},
		"a clone that leaves claims the same": {func(p *slotPool) {
			p.lives["a1"].last.Nonce++
			p.leave("a1")
		}, 4},
		"who is replaced is removed later": {func(p *slotPool) {
			p.send(p.request("a2"))
			p.wait(wire.Removal(longest) + time.Second)
		}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			p := newSlotPool(t)
			p.send(p.request("z1"))
			require.EqualValues(t, 6, p.slots("a1", 0, 6))
			tt.end(p)
			require.Equal(t, tt.want, p.slots("b1", 0, 10))
		})
	}
}

// A pool that is frozen lets no slots grow, but none go either; one with permits neither.
func TestTagSlotsDoNotGrow(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil           func(p *slotPool)
		same, more, few int64 // granted to 4 in use with 4, 9 and 2 wanted
	}{
		"frozen":          {func(p *slotPool) { p.at.Identity = "server 2" }, 4, 4, 4},
		"thawed":          {func(p *slotPool) { p.at.Identity = "server 2"; p.slots("a1", 4, 4); p.wait(wire.Removal(longest)) }, 4, 9, 2},
		"issuing permits": {func(p *slotPool) { p.rec.Permits.StrictUntil, p.rec.Permits.Spacing = p.at.Now+30_000_000, time.Second }, 0, 0, 0},
		"permits are left": {func(p *slotPool) {
			p.rec.Permits.Last, p.rec.Permits.Step = nanos(p.at.Now)+30_000_000_000, time.Second
		}, 4, 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := newSlotPool(t)
			require.EqualValues(t, 4, p.slots("a1", 0, 4))
			tt.spoil(p)
			require.Equal(t, tt.same, p.slots("a1", 4, 4))
			require.Equal(t, tt.more, p.slots("a1", 4, 9))
			require.Equal(t, tt.few, p.slots("a1", 4, 2))
		})
	}
}

// What a store has forgotten counts beside what it remembers, until the processor has told whose row it is.
func TestTagSlotsOfAStoreThatIsBehind(t *testing.T) {
	p := newSlotPool(t)
	p.send(p.request("a1", tag(1, 0, 2), tag(3, 0, 1)))
	older := copyOf(t, &p.rec)
	p.send(p.request("a1", tag(1, 2, 5), tag(2, 0, 5)))
	p.rec = *older
	p.slots("b1", 0, 1)
	revision := p.rec.Revision
	req := p.request("a1", tag(1, 5, 5), tag(2, 4, 5), TagSlots{Key: 5, Demand: 1})
	ans := p.send(req)
	require.Equal(t, Behind, ans.Status)
	require.Equal(t, revision+1, p.rec.Revision)
	require.Equal(t, []TagClaim{{1, 5, 2, 100}, {2, 4, 0, 0}, {3, 0, 1, 100}}, p.rec.Rows[0].TagClaims)
	require.EqualValues(t, 1, p.slots("b1", 1, 10), "the pool is frozen")
	again := p.request("a1", tag(1, 5, 5), tag(2, 4, 5))
	again.Recalled = ans.Newest
	require.Equal(t, []TagGrant{{1, 5, 1, 100}, {2, 4, 0, 0}}, p.send(again).TagSlots)
	require.Equal(t, []TagClaim{{1, 5, 5, 100}, {2, 4, 4, 100}}, p.rec.Rows[0].TagClaims)
}

// A row holds the tags of two processes, and no more.
func TestTagSlotsOfARowAreBounded(t *testing.T) {
	tags := func(first uint64) (slots []TagSlots) {
		for key := range uint64(wire.MaxTagSlots) {
			slots = append(slots, TagSlots{Key: first + 3*key, InUse: 1})
		}
		return slots
	}
	claims := withFacts(claimsOf(tags(1)), tags(2))
	require.Len(t, claims, 2*wire.MaxTagSlots)
	require.NoError(t, CheckTagClaims(claims))
	require.Equal(t, claims, withFacts(claims, tags(3)))
	more := tags(2)
	more[7].InUse = 9
	got := withFacts(claims, more)
	i, _ := findTagClaim(got, more[7].Key)
	require.EqualValues(t, 9, got[i].InUse)
	require.EqualValues(t, 1, claims[i].InUse, "the old slice is as it was")
}

// Slots rest on the lease, so that the next one waits until nobody claims any; and who has slots is a holder.
func TestTagSlotsRestOnTheLease(t *testing.T) {
	p := newSlotPool(t)
	p.slots("a1", 0, 6)
	p.send(p.request("a2"))
	p.leave("a2")
	next := func(name string) time.Duration {
		req := p.request(name)
		req.Lease = short
		return p.send(req).Lease
	}
	require.Equal(t, longest, next("c1"), "the claim of a1 is good for longer than a short lease says")
	p.leave("c1")
	for i := 0; p.claim("a1") > 0; i++ {
		p.at.Now += micros(wire.Clamp(longest))
		name := fmt.Sprint("d", i)
		next(name)
		p.leave(name)
	}
	require.Equal(t, short, next("e1"))

	r := &Record{Lease: longest, Clock: micros(longest)}
	for i := range 64 {
		r.Rows = append(r.Rows, Row{RowKey: RowKey{"p", fmt.Sprint(i)}, LastSeen: r.Clock, Holding: Holding{TagClaims: []TagClaim{{1, 1, 0, 0}}}})
	}
	require.False(t, r.HoldersWait())
	r.Rows[7].LastSeen -= micros(longest) * 3 / 4
	require.True(t, r.HoldersWait())
	r.Rows[7].TagClaims = []TagClaim{{1, 0, 0, 5}}
	require.False(t, r.HoldersWait(), "who only wants slots holds none")
}

func TestTagSlotsAreValidated(t *testing.T) {
	for name, tt := range map[string]struct {
		slots []TagSlots
		want  string
	}{
		"none":                            {nil, ""},
		"good ones":                       {[]TagSlots{{Key: 0, InUse: 1}, {Key: 1, Demand: 1, Wanted: wire.MaxTokens, Total: wire.MaxTokens}}, ""},
		"too many":                        {make([]TagSlots, wire.MaxTagSlots+1), "TagSlots is 257 tags, allowed: at most 256"},
		"in use below 0":                  {[]TagSlots{{InUse: -1}}, "TagSlots.InUse is -1, allowed: 0 to 1000000000"},
		"too many in use":                 {[]TagSlots{{InUse: wire.MaxTokens + 1}}, "TagSlots.InUse is 1000000001"},
		"too many wanted":                 {[]TagSlots{{InUse: 1, Wanted: wire.MaxTokens + 1}}, "TagSlots.Wanted is 1000000001"},
		"a negative demand":               {[]TagSlots{{InUse: 1, Demand: -1}}, "TagSlots.Demand is -1"},
		"a negative total":                {[]TagSlots{{InUse: 1, Total: -1}}, "TagSlots.Total is -1"},
		"nothing of a tag":                {[]TagSlots{{Key: 255, Wanted: 1}}, "TagSlots is the key 00000000000000ff with nothing in use and no demand"},
		"a key twice":                     {[]TagSlots{{Key: 9, InUse: 1}, {Key: 9, InUse: 1}}, "the key 0000000000000009 out of order, allowed: rising keys"},
		"falling keys":                    {[]TagSlots{{Key: 1 << 63, InUse: 1}, {Key: 8, InUse: 1}}, "the key 0000000000000008 out of order"},
		"a total by what is not reported": {nil, `TagSlotsBy is "other", allowed: empty, or the name of a document that is reported`},
	} {
		t.Run(name, func(t *testing.T) {
			req := Request{Pool: "p", ID: "a", Incarnation: "1", Seq: 1, Lease: longest, Report: Report{TagSlots: tt.slots, TagSlotsBy: "quotas"}}
			req.Documents = []DocumentReport{{Name: "quotas"}}
			if strings.HasPrefix(tt.want, "TagSlotsBy") {
				req.TagSlotsBy = "other"
			}
			err := req.Validate()
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
			var refused *RequestError
			require.ErrorAs(t, err, &refused)
		})
	}
}

// An answer that no store gives is not believed.
func TestTagGrantsAreChecked(t *testing.T) {
	for name, spoil := range map[string]func(a *Answer){
		"grants below 0":   func(a *Answer) { a.TagSlots[0].Granted = -1 },
		"too many slots":   func(a *Answer) { a.TagSlots[0].Granted = wire.MaxTokens + 1 },
		"too many tags":    func(a *Answer) { a.TagSlots = make([]TagGrant, wire.MaxTagSlots+1) },
		"claims below 0":   func(a *Answer) { a.TagSlots[0].Claimed = -1 },
		"a wrong demand":   func(a *Answer) { a.TagSlots[0].Demand = -1 },
		"a wrong roster":   func(a *Answer) { a.Roster[0].TagClaims = []TagClaim{{InUse: -1}} },
		"nothing of a tag": func(a *Answer) { a.Roster[0].TagClaims = []TagClaim{{}} },
	} {
		t.Run(name, func(t *testing.T) {
			p := newSlotPool(t)
			ans := p.send(p.request("a1", tag(1, 0, 4)))
			require.NoError(t, ans.Check())
			spoil(&ans)
			require.ErrorIs(t, ans.Check(), ErrWrongAnswer)
		})
	}
}
