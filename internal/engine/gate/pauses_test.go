package gate

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Those who are told the same end do not all start at one instant, and none starts before it.
func TestStartAfterAPauseIsStaggered(t *testing.T) {
	for d, most := range map[time.Duration]time.Duration{time.Second: 100 * time.Millisecond, time.Hour: time.Second} {
		seen := map[int64]bool{}
		for range 200 {
			var p Pauses
			p.Put([]limit.Paused{{Until: time.Unix(0, int64(d))}}, "", 0, func(at time.Time) int64 { return at.UnixNano() }, rand.Float64())
			require.GreaterOrEqual(t, p.Until, int64(d+min(d/20, 250*time.Millisecond)))
			require.LessOrEqual(t, p.Until, int64(d+most))
			seen[p.Until] = true
		}
		require.Greater(t, len(seen), 150)
	}
}

// A pool's limiter is told of one pause again and again, a little more exactly each time.
func TestStaggerStaysWhileTheEndMovesALittle(t *testing.T) {
	var p Pauses
	at := func(end int64) {
		p.Put([]limit.Paused{{Until: time.Unix(0, end)}}, "", 0, func(at time.Time) int64 { return at.UnixNano() }, 0.5)
	}
	at(int64(time.Minute))
	first := p.Until
	at(int64(time.Minute - 300*time.Millisecond))
	require.Equal(t, first-int64(300*time.Millisecond), p.Until)
	require.Equal(t, int64(1), p.Count)
	at(int64(2 * time.Minute))
	require.GreaterOrEqual(t, p.Until, int64(2*time.Minute))
	require.Equal(t, int64(1), p.Count)
}

// endOf is when a pause ends, in seconds: for an unknown end, later than any other.
func endOf(p limit.Paused) int64 {
	if p.Until.IsZero() {
		return 1 << 40
	}
	return p.Until.Unix()
}

// longest returns the pause among some tags that ends last; the first of those that end at one time.
func longest(list []limit.Paused, now int64, tags ...string) (worst limit.Paused, ok bool) {
	for _, p := range list {
		if slices.Contains(tags, p.Tag) && endOf(p) > now && (!ok || endOf(p) > endOf(worst)) {
			worst, ok = p, true
		}
	}
	return worst, ok
}

func randomPauses(r *rand.Rand, now int64) (list []limit.Paused) {
	for range r.IntN(5) {
		p := limit.Paused{Tag: []string{"", "own", "a", "b"}[r.IntN(4)], Reason: fmt.Sprint(r.IntN(100))}
		if r.IntN(6) > 0 {
			p.Until = time.Unix(now+r.Int64N(7)-2, 0)
		}
		list = append(list, p)
	}
	return list
}

func TestListsOfPausesMatchPlainOnes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range testkit.Fewer(20_000) {
		const now = 100
		known := Pauses{list: randomPauses(r, now)}
		tag := []string{"", "own", "a", "b", "c"}[r.IntN(5)]
		got, paused := known.of(tag, "own", time.Unix(now, 0))
		want, ok := longest(known.list, now, tag, "own", "")
		require.Equal(t, ok, paused)
		require.Equal(t, want, got)

		added := limit.Paused{Tag: tag, Until: time.Unix(now+1+r.Int64N(4), 0), Reason: "new"}
		if r.IntN(4) == 0 {
			added.Until = time.Time{}
		}
		slices.SortStableFunc(known.list, func(a, b limit.Paused) int { return cmp.Compare(a.Tag, b.Tag) })
		known.list = slices.CompactFunc(known.list, func(a, b limit.Paused) bool { return a.Tag == b.Tag }) // at most one for each tag
		list, inForce := known.add(added, time.Unix(now, 0))
		for _, of := range []string{"", "own", "a", "b", "c"} {
			want, _ := longest(append(slices.Clone(known.list), added), now, of)
			got, _ := longest(list, -1, of)
			require.Equal(t, want, got, "the later end counts, and what is over is left out")
			if of == tag {
				require.Equal(t, want, inForce)
			}
		}
		tags := map[string]bool{}
		for _, p := range list {
			require.False(t, tags[p.Tag], "%+v", list)
			tags[p.Tag] = true
		}

		rest := slices.DeleteFunc(slices.Clone(known.list), func(p limit.Paused) bool { return p.Tag == tag })
		require.ElementsMatch(t, rest, known.without(tag))
		others := slices.DeleteFunc(slices.Clone(known.list), func(p limit.Paused) bool { return p.Tag == "" || p.Tag == "own" })
		require.ElementsMatch(t, others, known.Tags("own"))
	}
}

// What holds a limiter after each list of pauses: seconds, with a chance of one half. The store's own pause is held for a twentieth longer
// and half of as much, at most 0.625 s.
func TestPausesOneAfterTheOther(t *testing.T) {
	const never = -1.0
	type list []limit.Paused
	at := func(s float64) time.Time { return time.Unix(0, int64(s*1e9)) }
	pause := func(tag, why string, until float64) limit.Paused {
		p := limit.Paused{Tag: tag, Reason: why}
		if until != never {
			p.Until = at(until)
		}
		return p
	}
	type step struct {
		now   float64
		put   list
		until float64 // until when the limiter is held; 0: it is not
		count int64
		by    string
	}
	for name, steps := range map[string][]step{
		"one pause": {
			{0, list{pause("", "x", 10)}, 10.5, 1, "x"},
			{5, list{pause("", "x", 10)}, 10.5, 1, "x"},
		},
		"a short one": {{0, list{pause("", "x", 4)}, 4.3, 1, "x"}},
		"a long one":  {{0, list{pause("", "x", 100)}, 100.625, 1, "x"}},
		"its own tag, and others": {
			{0, list{pause("a", "x", 20), pause("own", "y", 10), pause("b", "z", 30)}, 10.5, 1, "y"},
			{1, list{pause("a", "x", 20)}, 1.05, 1, "y"},
		},
		"the one that ends last holds it": {{0, list{pause("own", "x", 8), pause("", "y", 10)}, 10.5, 1, "y"}},
		"of two the first":                {{0, list{pause("own", "x", 10), pause("", "y", 10)}, 10.5, 1, "x"}},
		"over":                            {{9, list{pause("", "x", 8)}, 0, 0, ""}},
		"over at this moment":             {{8, list{pause("", "x", 8)}, 0, 0, ""}},
		"none":                            {{0, nil, 0, 0, ""}, {1, nil, 0, 0, ""}},
		"until a resume": {
			{0, list{pause("", "x", never)}, never, 1, "x"},
			{4, list{pause("", "x", never)}, never, 1, "x"},
			{20, nil, 20.5, 1, "x"}, // at most a second, after a tenth of the pause
			{20.2, nil, 20.5, 1, "x"},
			{20.5, nil, 0, 1, ""},
		},
		"ended early after a short time": {{10, list{pause("", "x", 40)}, 40.625, 1, "x"}, {14, nil, 14.2, 1, "x"}},
		"resumed at its end": {
			{0, list{pause("", "x", 4)}, 4.3, 1, "x"},
			{4, nil, 4.3, 1, "x"}, // the stagger stays
			{4.3, nil, 0, 1, ""},
		},
		"a pause in the stagger of another": {
			{0, list{pause("", "x", 10)}, 10.5, 1, "x"},
			{10, list{pause("", "y", 14)}, 14.3, 2, "y"},
			{12, nil, 12.1, 2, "y"},
		},
		"another pause later": {
			{0, list{pause("", "x", 10)}, 10.5, 1, "x"},
			{20, list{pause("", "y", 20.4)}, 20.43, 2, "y"},
		},
		"an end that moves": {
			{0, list{pause("", "x", 10)}, 10.5, 1, "x"},
			{5, list{pause("", "x", 11)}, 11.5, 1, "x"}, // by a second or less: the stagger stays
			{6, list{pause("", "x", 10)}, 10.5, 1, "x"},
			{7, list{pause("", "x", 11.1)}, 11.4075, 1, "x"}, // by more: a new one, of the rest
			{7.1, list{pause("", "x", 10)}, 10.2175, 1, "x"},
			{7.2, list{pause("", "x", never)}, never, 1, "x"},
			{7.3, list{pause("", "x", 9.3)}, 9.45, 1, "x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var p Pauses
			for _, s := range steps {
				now := int64(s.now * 1e9)
				p.Put(s.put, "own", now, func(at time.Time) int64 { return at.UnixNano() }, 0.5)
				status := p.Status(now, at(0))
				left, known := p.Left(now)
				require.Equal(t, s.count, p.Count)
				require.Equal(t, s.until != 0, p.Holds(now))
				require.Equal(t, s.until != never, known)
				switch s.until {
				case 0:
					require.Nil(t, status)
					require.Zero(t, left)
				case never:
					require.Equal(t, limit.Paused{Reason: s.by}, *status)
				default:
					require.InDelta(t, s.until-s.now, left.Seconds(), 1e-6)
					require.Equal(t, s.by, status.Reason)
					require.WithinDuration(t, at(s.until), status.Until, time.Microsecond)
				}
			}
		})
	}
}
