package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// announcedPool is a pool of processors that follow what the service announces.
type announcedPool struct {
	t      *testing.T
	record driver.Record
	procs  []*Processor
	told   []int64 // to each, per minute
	now    time.Duration
}

func newAnnouncedPool(t *testing.T, processors int, c ceiling.Config) *announcedPool {
	t.Helper()
	p := &announcedPool{t: t, told: make([]int64, processors)}
	c.Limit = ceiling.Rate{Max: 600, Per: time.Minute}
	for i := range processors {
		id := string(rune('a' + i))
		one := NewProcessor(ProcessorConfig{Pool: "pool", ID: id}, id)
		one.Configure(sharing.Terms{Ceiling: c})
		p.procs = append(p.procs, one)
	}
	p.sync(3)
	return p
}

// configure gives one processor another configuration.
func (p *announcedPool) configure(i int, c ceiling.Config) {
	p.procs[i].Configure(sharing.Terms{Ceiling: c})
}

// sync lets each processor ask so many times.
func (p *announcedPool) sync(times int) {
	for range times {
		p.now += time.Second
		for i, one := range p.procs {
			one.ask(p.t, &p.record, p.now, Observation{Announced: p.told[i]})
		}
	}
}

// limits returns the limit in force of each processor, per minute.
func (p *announcedPool) limits() (all []int64) {
	for _, one := range p.procs {
		all = append(all, int64(one.ceiling.law.Limit().Tokens(time.Minute)))
	}
	return all
}

func (p *announcedPool) overview() Overview {
	o, part := overviewOf("pool", p.procs[0].Answer.Roster)
	o.setGranted(part)
	return o
}

// What the service announces to most is in force two syncs later, everywhere; what it announces to one of four changes nothing.
func TestAPoolFollowsWhatIsAnnounced(t *testing.T) {
	p := newAnnouncedPool(t, 4, ceiling.Config{Follows: true})
	require.Equal(t, []int64{600, 600, 600, 600}, p.limits())
	p.told[2] = 1
	p.sync(4)
	require.Equal(t, []int64{600, 600, 600, 600}, p.limits())
	p.told = []int64{300, 300, 1, 300}
	p.sync(2)
	require.Equal(t, []int64{300, 300, 300, 300}, p.limits())
	o := p.overview()
	require.Equal(t, Announced{Max: 300, Per: time.Minute, Followed: true}, o.Announced)
	require.Equal(t, 300, o.Max)
	require.InDelta(t, 5, o.Granted, 1e-9)
	p.told = []int64{0, 300, 0, 0}
	p.sync(2)
	require.Equal(t, []int64{600, 600, 600, 600}, p.limits(), "what one alone still knows is too little")
	require.Zero(t, p.overview().Announced)
}

// A limit that does not follow is as configured; operators see what is announced.
func TestAnnouncedAndNotFollowed(t *testing.T) {
	p := newAnnouncedPool(t, 2, ceiling.Config{})
	p.told[1] = 250
	p.sync(2)
	require.Equal(t, []int64{600, 600}, p.limits())
	require.Equal(t, Announced{Max: 250, Per: time.Minute}, p.overview().Announced)
	require.Equal(t, 600, p.overview().Max)
}

// Where no number is configured a pool begins slowly, and one answer is enough.
func TestAPoolBeginsBeforeAnythingIsAnnounced(t *testing.T) {
	p := newAnnouncedPool(t, 4, ceiling.Config{Follows: true, First: 60})
	require.Equal(t, []int64{60, 60, 60, 60}, p.limits())
	require.Equal(t, 60, p.overview().Max)
	require.Equal(t, Announced{Awaited: true}, p.overview().Announced)
	p.told[3] = 1
	p.sync(2)
	require.Equal(t, []int64{60, 60, 60, 60}, p.limits(), "one of four cannot lower it")
	p.told[3] = 500
	p.sync(2)
	require.Equal(t, []int64{500, 500, 500, 500}, p.limits())
	o := p.overview()
	require.Equal(t, Announced{Max: 500, Per: time.Minute, Followed: true}, o.Announced)
}

// As with the configured limit one processor binds all: else the shares would add up to more than any of them allows.
func TestOneProcessorFollowsForAll(t *testing.T) {
	p := newAnnouncedPool(t, 2, ceiling.Config{})
	p.told = []int64{300, 300}
	p.sync(2)
	require.Equal(t, []int64{600, 600}, p.limits())
	p.configure(1, ceiling.Config{Limit: ceiling.Rate{Max: 10, Per: time.Second}, Follows: true})
	p.told[1] = 5 // a second
	p.sync(2)
	require.Equal(t, []int64{300, 300}, p.limits())
	require.True(t, p.overview().Announced.Followed)
	p.configure(1, ceiling.Config{Limit: ceiling.Rate{Max: 100_000, Per: time.Minute}, Follows: true, First: 60})
	p.told = []int64{0, 0}
	p.sync(2)
	require.Equal(t, []int64{60, 60}, p.limits())
	require.Equal(t, Announced{Awaited: true}, p.overview().Announced)
	p.configure(1, ceiling.Config{Limit: ceiling.Rate{Max: 600, Per: time.Minute}})
	p.sync(2)
	require.Equal(t, []int64{600, 600}, p.limits(), "nobody follows any more")
}

// A processor that joins a pool without a number of its own begins with what the pool follows, and draws nothing before it knows that.
func TestAProcessorJoinsAPoolThatFollows(t *testing.T) {
	for name, tc := range map[string]struct {
		told []int64
		want int64
	}{"nothing is announced": {[]int64{0, 0}, 60}, "of three the lowest is ignored": {[]int64{500, 400}, 500}} {
		p := newAnnouncedPool(t, 2, ceiling.Config{Follows: true})
		p.told = tc.told
		p.sync(3)
		late := NewProcessor(ProcessorConfig{Pool: "pool", ID: "z"}, "z")
		late.Configure(sharing.Terms{Ceiling: ceiling.Config{Limit: ceiling.Rate{Max: 100_000, Per: time.Minute}, Follows: true, First: 60}})
		require.Equal(t, int64(60), late.ceiling.law.Limit().Max, name)
		require.Zero(t, late.Held(p.now), name)
		p.procs, p.told = append(p.procs, late), append(p.told, 0)
		p.sync(3)
		require.Equal(t, []int64{tc.want, tc.want, tc.want}, p.limits(), name)
	}
}

// What is announced is followed only below the lowest configured limit; of several first limits the lowest counts, whatever their periods.
func TestWhatIsAnnouncedAndFollowed(t *testing.T) {
	minute := func(n int64) ceiling.Rate { return ceiling.Rate{Max: n, Per: time.Minute} }
	second := ceiling.Rate{Max: 10, Per: time.Second}
	for name, tc := range map[string]struct {
		notes []Note
		told  Announced
		in    ceiling.Rate
	}{
		"more than configured": {
			[]Note{{limit: minute(600), follows: true, announced: 700}}, Announced{Max: 700, Per: time.Minute}, minute(600),
		},
		"the lower first":  {[]Note{{limit: minute(600), follows: true, first: 50}, {limit: minute(600), first: 90}}, Announced{Awaited: true}, minute(50)},
		"also as the last": {[]Note{{limit: minute(600), follows: true, first: 90}, {limit: minute(600), first: 50}}, Announced{Awaited: true}, minute(50)},
		"by their periods": {
			[]Note{{limit: second, follows: true, first: 1}, {limit: minute(600), first: 90}}, Announced{Awaited: true}, ceiling.Rate{Max: 1, Per: time.Second},
		},
	} {
		var s announcements
		for i := range tc.notes {
			s.add(&tc.notes[i])
		}
		told, in := s.over(minute(600), len(tc.notes))
		require.Equal(t, tc.told, told, name)
		require.Equal(t, tc.in, in, name)
	}
}

// An override is the limit in force, and no other.
func TestAnOverrideOfAnAnnouncedLimit(t *testing.T) {
	for told, want := range map[int64]Announced{0: {}, 300: {Max: 300, Per: time.Minute}} {
		p := newAnnouncedPool(t, 2, ceiling.Config{Follows: true, First: 60})
		p.told = []int64{told, told}
		p.sync(2)
		o := p.overview()
		o.setOverride(Override{Max: 500})
		require.Equal(t, 500, o.Max)
		require.Equal(t, want, o.Announced)
	}
}

// The word of a note is read as it is written, gives way to what others need, and means nothing without a limit.
func TestAnnouncedInANote(t *testing.T) {
	n := Note{limit: ceiling.Rate{Max: 600, Per: time.Minute}, announced: 300}
	require.Equal(t, "1 0 600 60000000 0 0 a:8c", n.String())
	require.Equal(t, n, NoteIn(n.String()))
	n.announced, n.follows, n.first = 0, true, 60
	require.Equal(t, "1 0 600 60000000 0 0 a:.1.1o", n.String())
	require.Equal(t, n, NoteIn(n.String()))
	require.Equal(t, Note{limit: n.limit, announced: 5}, NoteIn("1 0 600 60000000 0 0 a:5.2"), "of a later release")
	require.Zero(t, NoteIn("1 0 600 60000000 0 0 a:zzzzzzzzz").announced)
	require.Empty(t, Note{announced: 5, follows: true}.String())
	full := Note{
		hard: true, limit: ceiling.Rate{Max: maxNoteTokens, Per: time.Duration(maxNotePer) * time.Microsecond}, used: maxNoteFlow, offered: maxNoteFlow,
		reports: true, retryAt: 1 << 53, Paused: 1 << 62, announced: maxNoteTokens, follows: true, first: maxNoteTokens,
	}
	full.served.Generation, full.served.Accepted, full.served.Refused, full.served.Overloaded = maxNoteCuts, maxNoteFlow, maxNoteFlow, maxNoteFlow
	require.NoError(t, driver.ValidateNote(full.String()))
	require.Contains(t, full.String(), " p:")
	require.NotContains(t, full.String(), " a:")
}
