package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/demo/stage"
)

func moments(ms ...int) []time.Time {
	out := make([]time.Time, len(ms))
	for i, m := range ms {
		out[i] = time.UnixMilli(int64(m))
	}
	return out
}

func TestMaxWindow(t *testing.T) {
	for _, c := range []struct {
		name string
		at   []time.Time
		want int
	}{
		{"none", nil, 0},
		{"one", moments(5), 1},
		{"a window is half open", moments(0, 1000, 2000), 1},
		{"just within", moments(0, 999, 1000), 2},
		{"in any order", moments(1400, 0, 1300, 700, 1200), 4},
		{"all at once", moments(7, 7, 7, 7), 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, at := maxWindow(c.at, time.Second)
			require.Equal(t, c.want, n)
			if n > 0 {
				require.Equal(t, n, countBetween(c.at, at, at.Add(time.Second)))
			}
		})
	}
}

func TestServiceRefusesAboveItsBoundAndTellsLateCallsApart(t *testing.T) {
	s := &service{bound: 3}
	now := time.Now()
	for range 3 {
		require.True(t, s.admit(now))
	}
	require.False(t, s.admit(now), "the fourth in a second")
	require.True(t, s.admit(now.Add(-time.Minute)), "granted long ago: late, not a broken bound")
	got := s.tally()
	require.Equal(t, tally{calls: 4, byArrival: 3, byGrant: 3, late: 1, refused: 1}, got)
}

func TestVerdictFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*demo)
		ok    bool
	}{
		{"all is well", func(*demo) {}, true},
		{"refused", func(d *demo) { d.svc.refused = 1 }, false},
		{"bound broken", func(d *demo) {
			for range 10 {
				d.svc.grants = append(d.svc.grants, time.UnixMilli(1))
			}
		}, false},
		{"limit not used", func(d *demo) { d.steady = append(d.steady, phase{use: 0.96}) }, false},
		{"slow to heal", func(d *demo) { d.events = append(d.events, event{took: 2, limit: 1}) }, false},
		{"cold start is only measured", func(d *demo) { d.events = append(d.events, event{took: 2}) }, true},
		{"message lost", func(d *demo) { d.feed.in.Add(1) }, false},
		{"a process hung", func(d *demo) { d.ended = errNotHealed }, false},
		{"it took long", func(d *demo) { d.began = d.began.Add(-longest + 10*time.Second) }, true},
		{"it took too long", func(d *demo) { d.began = d.began.Add(-longest) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &demo{out: t.Output(), svc: &service{bound: 5}, feed: &feeder{}, began: time.Now(), late: &stage.Lateness{}}
			c.spoil(d)
			require.Equal(t, c.ok, d.verdict())
		})
	}
}
