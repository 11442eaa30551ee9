package redisstore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// draws are some draws from few tag buckets.
func (m *model) draws() (draws []driver.Draw) {
	keys := []uint64{0, 1, 1 << 63, 1<<64 - 1}
	if m.rnd.IntN(3) == 0 {
		return nil
	}
	for _, key := range keys {
		if m.rnd.IntN(3) > 0 {
			draws = append(draws, m.draw(key))
		}
	}
	m.rnd.Shuffle(len(draws), func(i, j int) { draws[i], draws[j] = draws[j], draws[i] })
	return draws
}

func (m *model) draw(key uint64) driver.Draw {
	amount := func() int64 {
		return pick(m, 0, 0, 1, m.rnd.Int64N(20), m.rnd.Int64N(20), m.rnd.Int64N(2000), m.rnd.Int64N(wire.MaxTokens+1), wire.MaxTokens)
	}
	d := driver.Draw{
		Key: key, Version: driver.Version(pick[uint64](m, 0, 1<<62, 1<<62, 1<<62, 1<<62+1, 1<<53+1, wire.MaxVersion)),
		Total: pick(m, 0, 1, 7, 333, 1000, m.rnd.Int64N(wire.MaxTokens+1), wire.MaxTokens), Burst: amount(), Ask: amount(),
		Per: pick(m, time.Second, 1234*time.Microsecond, time.Minute, wire.MaxSpacing, wire.MinPer), Pattern: m.rnd.IntN(3) == 0,
	}
	if m.rnd.IntN(20) > 0 { // or no version but the highest could draw soon
		d.Version = min(d.Version, 1<<62)
	}
	if m.rnd.IntN(4) == 0 {
		d.Ahead = pick(m, time.Microsecond, 3*time.Second, time.Hour, wire.MaxReach)
	}
	if m.rnd.IntN(4) == 0 {
		d.Back = amount()
	}
	if m.rnd.IntN(6) == 0 {
		d.Owed = amount()
	}
	const hour = 3_600_000_000
	now := m.at.Now
	for range m.rnd.IntN(wire.MaxBudgets + 1) {
		start := now - now%pick[int64](m, hour, 24*hour, 60_000_000, 5_000_000)
		start += pick[int64](m, 0, 0, 0, 0, 0, -5_000_000, hour)
		d.Budgets = append(d.Budgets, driver.BudgetDraw{
			Amount: pick(m, 1000, 1_000_000, amount(), wire.MaxAmount), Start: start, End: start + pick[int64](m, hour, hour, 24*hour, 1, 5_000_000),
			Seen: pick(m, 0, 0, amount(), 4*wire.MaxAmount),
		})
	}
	return d
}

// noteDraws counts what became of draws.
func (m *model) noteDraws(before *driver.Record, req *driver.Request, drawn []driver.Drawn) {
	for i, d := range drawn {
		m.seen[fmt.Sprint("lack ", d.Lack)]++
		if d.Tokens > 0 {
			m.seen["drawn"]++
		}
		if d.From > 0 {
			m.seen["reserved"]++
		}
		if j, ok := slices.BinarySearchFunc(before.TagBuckets, d.Key, tagBucketOrder); ok {
			now, _ := slices.BinarySearchFunc(m.record.TagBuckets, d.Key, tagBucketOrder)
			if len(d.Spent) > 0 && req.Draws[i].Back > 0 && slices.ContainsFunc(before.TagBuckets[j].Spent, func(s driver.Spent) bool {
				return s.Start == req.Draws[i].Budgets[0].Start && s.Tokens > d.Spent[0]
			}) {
				m.seen["back"]++
			}
			if len(m.record.TagBuckets[now].Spent) > len(before.TagBuckets[j].Spent) {
				m.seen["window began"]++
			}
		}
	}
	for _, t := range before.TagBuckets {
		if _, ok := slices.BinarySearchFunc(m.record.TagBuckets, t.Key, tagBucketOrder); !ok {
			m.seen["made way"]++
		}
	}
}

// setSpent sets what is spent of a window, mostly of one that is on record.
func (m *model) setSpent() {
	s := driver.SpentReport{
		Key: pick[uint64](m, 0, 1, 1<<63, 1<<64-1), Start: m.at.Now - pick[int64](m, 0, 5_000_000, 3_600_000_000, -1),
		Tokens: pick(m, 0, m.rnd.Int64N(2000), m.rnd.Int64N(wire.MaxTokens), 4*wire.MaxAmount),
	}
	if n := len(m.record.TagBuckets); n > 0 && m.rnd.IntN(3) > 0 {
		t := m.record.TagBuckets[m.rnd.IntN(n)]
		if s.Key = t.Key; len(t.Spent) > 0 {
			s.Start = t.Spent[m.rnd.IntN(len(t.Spent))].Start
		}
	}
	if s.Start = max(s.Start, 0); m.rnd.IntN(8) > 0 {
		s.End = m.at.Now + pick[int64](m, 1, 3_600_000_000)
	}
	if s.End = max(s.End, s.Start+1); s.Validate(m.pool) != nil {
		return
	}
	m.setTagBucket(s)
}

// setTagBucket sets what is spent by the script and by the reference.
func (m *model) setTagBucket(s driver.SpentReport) {
	m.setEnvironment()
	want := m.record.SetSpent(&s, m.at)
	reply, err := scriptedSpent.Run(m.t.Context(), m.client, []string{m.key, "marker", tagBucketsKey(m.key), namesKey(m.key), sketchKey(m.key)},
		string(binary.BigEndian.AppendUint64(nil, s.Key)), string(appendNumbers(nil, s.Start, s.End, s.Tokens))).Result()
	require.NoError(m.t, err)
	require.Equal(m.t, want, parseSetSpent(reply, &s), "%+v", s)
	if m.record.Revision > 0 {
		require.Equal(m.t, sorted(m.record), m.stored(), "on record after %+v", s)
	}
	var bad *driver.RequestError
	switch {
	case want == nil:
		m.seen["spent set"]++
	case errors.As(want, &bad) && bad.Field == "Key":
		m.seen["no tag bucket left"]++
	case errors.As(want, &bad):
		m.seen["no such window"]++
	}
}

const oneGoroutine = "one goroutine compares thousands of tag buckets after each step"

// TestScriptsDropTheSameTagBuckets lets the table get full, of tag buckets of which some can make way.
func TestScriptsDropTheSameTagBuckets(t *testing.T) {
	testkit.SkipRace(t, oneGoroutine)
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	for seed := range uint64(4) {
		m := newModel(t, c, seed)
		m.at.Remembers = math.MaxInt64
		req := driver.Request{ID: "a", Incarnation: "1", Lease: driver.DefaultLease}
		for step := range 60 {
			m.at.Now += pick[int64](m, 10_000, 100_000, 1_000_000)
			req.LastSeq, req.Seq, req.Draws = req.Seq, req.Seq+1, nil
			keys := make([]uint64, wire.MaxDraws)
			for i := range keys {
				keys[i] = m.rnd.Uint64N(wire.MaxTagBuckets/2*(seed+3)) * 0x123456789abcdef
			}
			slices.Sort(keys)
			for _, key := range slices.Compact(keys) {
				d := driver.Draw{Key: key, Total: 1000, Per: time.Second, Burst: pick[int64](m, 0, 0, 1, 1000), Ask: pick[int64](m, 1, 1, 2000)}
				if m.rnd.IntN(4) <= step/20 { // later most of them have budgets
					d.Budgets = []driver.BudgetDraw{{Amount: 10, Start: m.at.Now - 1, End: m.at.Now + pick[int64](m, 1, 1_000_000, 3_600_000_000)}}
				}
				req.Draws = append(req.Draws, d)
			}
			m.sync(req)
			m.setTagBucket(driver.SpentReport{Key: m.rnd.Uint64(), Start: m.at.Now, End: m.at.Now + 1000, Tokens: int64(step)})
		}
		require.Positive(t, m.seen["spent set"])
		require.Positive(t, m.seen["no tag bucket left"])
		require.Positive(t, m.seen["made way"])
		require.Positive(t, m.seen["lack 6"])
		require.Len(t, m.record.TagBuckets, wire.MaxTagBuckets)
	}
}

// TestScriptsDropTheSameNames lets the area of names get full, of tag buckets that are drawn from by bursts and budgets.
func TestScriptsDropTheSameNames(t *testing.T) {
	testkit.SkipRace(t, oneGoroutine)
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	early := 0 // chance
	for seed := range uint64(3) {
		m := newModel(t, c, seed)
		m.at.Remembers = math.MaxInt64
		req := driver.Request{ID: "a", Incarnation: "1", Lease: driver.DefaultLease}
		dropped, known := 0, 0
		for range 40 {
			m.at.Now += pick[int64](m, 10_000, 100_000, 1_000_000)
			req.LastSeq, req.Seq, req.Draws = req.Seq, req.Seq+1, nil
			names := map[string]bool{}
			for range wire.MaxDraws {
				names[fmt.Sprint("name-", m.rnd.IntN(2*wire.MaxNames))] = true
			}
			for _, name := range slices.Sorted(maps.Keys(names)) {
				d := driver.Draw{
					Key: tagname.Key(name), Total: 1000, Per: pick(m, time.Second, 100*time.Second, time.Hour),
					Burst: pick[int64](m, 0, 1, 1000, 1000, 1000, 1000),
					Ask:   pick[int64](m, 1, 1, 2000), Pattern: m.rnd.IntN(200) > 0,
				}
				if m.rnd.IntN(2) == 0 {
					d.Budgets = []driver.BudgetDraw{{Amount: 10_000, Start: 3_600_000_000, End: m.at.Now + pick[int64](m, 1, 1_000_000, 3_600_000_000)}}
				}
				req.Draws = append(req.Draws, d)
			}
			before := len(m.record.Names.Cells)
			m.sync(req)
			dropped = max(dropped, len(m.record.Names.Cells)-before)
			for _, c := range m.record.Names.Cells {
				if c.Index >= wire.MaxCells/2 {
					early++
				}
			}
			for i := range m.record.Names.TagBuckets {
				if s := m.record.Names.TagBuckets[i].Spent; len(s) > 0 && s[0].Tokens > 4000 {
					known++
				}
			}
			m.setTagBucket(driver.SpentReport{Key: tagname.Key(fmt.Sprint("name-", m.rnd.IntN(5000))), Start: m.at.Now, End: m.at.Now + 1000, Tokens: 7})
		}
		require.Positive(t, dropped)
		require.Positive(t, known)
		require.LessOrEqual(t, len(m.record.Names.TagBuckets), wire.MaxNames)
		require.Positive(t, m.seen["spent set"])
	}
	require.Positive(t, early)
}

func tagBucketOrder(t driver.TagBucket, key uint64) int { return cmp.Compare(t.Key, key) }
