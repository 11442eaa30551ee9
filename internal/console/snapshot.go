package console

import (
	"cmp"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/poolview"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/why"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A snapshot is a pool as the page shows it. Shares and use are fractions of the limit in force. Times are in milliseconds; moments in Unix
// time.
type snapshot struct {
	Pool string `json:"pool"`
	// Why says what limits callers, as numathrottle why does. Cause is that in a word, and Level its severity.
	Why   string    `json:"why"`
	Cause string    `json:"cause"`
	Level why.Level `json:"level"`
	// Limit describes the limit. PerSecond is its rate, or the number of slots if it limits calls in flight. 0: no pod reports one.
	Limit     string  `json:"limit"`
	PerSecond float64 `json:"perSecond"`
	InFlight  bool    `json:"inFlight"`
	// Max per Per (in seconds) is the limit in force, the initial value in the form. 0: not known.
	Max int     `json:"max"`
	Per float64 `json:"per"`
	// Ramp is the current rate of a ramp, per second; 0: there is none.
	Ramp       float64     `json:"ramp"`
	Use        float64     `json:"use"`
	Waiting    int         `json:"waiting"`
	Override   *order      `json:"override"`
	Pauses     []order     `json:"pauses"`
	Frozen     int64       `json:"frozen"`
	FrozenBy   string      `json:"frozenBy"`
	Disagree   string      `json:"disagree"`
	Unreadable []string    `json:"unreadable"`
	Agreed     bool        `json:"agreed"`
	PoolSize   int         `json:"poolSize"`
	Processors []processor `json:"processors"`
	Quotas     *quotaTable `json:"quotas"` // nil: no processor has any
}

// An order is a pause, an override or a changed quota: its effect, duration and reason.
type order struct {
	What   string `json:"what"`
	Tag    string `json:"tag"`
	Until  int64  `json:"until"` // 0: until it is cleared
	By     string `json:"by"`
	Reason string `json:"reason"`
}

type processor struct {
	ID         string  `json:"id"`
	Share      float64 `json:"share"`
	Demand     float64 `json:"demand"`
	Use        float64 `json:"use"`
	Waiting    int     `json:"waiting"`
	Throttled  string  `json:"throttled"` // a reason, with Tag if it is that tag's quota; empty: the limit
	Tag        string  `json:"tag"`
	Configured string  `json:"configured"`
	Silent     int64   `json:"silent"`
	// Overdue says that it should have synced by now: its report is outdated. Its share is nobody else's for Left more.
	Overdue bool  `json:"overdue"`
	Left    int64 `json:"left"`
}

// newSnapshot returns the snapshot of an overview at now.
func newSnapshot(o *protocol.Overview, now time.Time) snapshot {
	s := snapshot{
		Pool: o.Pool, Limit: cmp.Or(poolview.LimitText(o), "none that a pod tells"), Disagree: protocol.Disagreement(o.Settings, o.Override.Max > 0),
		Frozen: o.Frozen.Milliseconds(), FrozenBy: o.FrozenBy.Explain(), Agreed: o.Agreed, PoolSize: o.PoolSize,
		Unreadable: append([]string{}, o.Unreadable...), Pauses: []order{}, Processors: []processor{},
	}
	a := why.Explain(why.Pool(o, now))
	s.Why, s.Cause, s.Level, s.Max, s.Per = a.Sentence, a.Cause, a.Level, o.Max, o.Per.Seconds()
	switch {
	case o.Max > 0 && o.Per > 0:
		s.PerSecond = float64(o.Max) / o.Per.Seconds()
	case o.Max == 0 && o.Slots > 0:
		s.PerSecond, s.InFlight = float64(o.Slots), true
	}
	if o.Ramp > 0 && o.RampPer > 0 {
		s.Ramp = o.Ramp / o.RampPer.Seconds()
	}
	if o.Override.Max > 0 {
		s.Override = &order{What: s.Limit, Until: millis(o.Override.Until), By: o.Override.By, Reason: o.Override.Reason}
	}
	for _, p := range poolview.PausesAt(o.Pauses, now) {
		s.Pauses = append(s.Pauses, order{What: pauseWhat(&p), Tag: p.Tag, Until: millis(p.Until), By: p.By, Reason: p.Reason})
	}
	s.Use, s.Waiting = poolview.Use(o)
	for i := range o.Processors {
		row := &o.Processors[i]
		s.Processors = append(s.Processors, processor{
			ID: row.ID, Share: row.Claim.Fraction(), Demand: row.Demand.Fraction(), Use: poolview.UseOf(o, row), Waiting: row.Waiting,
			Throttled: poolview.Word(string(row.Throttled)), Tag: cmp.Or(row.Pattern, row.Tag), Configured: poolview.Configured(row),
			Silent: row.Silent.Milliseconds(), Overdue: row.Overdue, Left: row.Left.Milliseconds(),
		})
	}
	return s
}

func pauseWhat(p *throttle.Paused) string {
	if p.Tag == "" {
		return "everything"
	}
	return "tag " + p.Tag
}

// millis returns a moment in Unix milliseconds; 0 for the zero Time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// A sample is one moment of a pool's chart.
type sample struct {
	At      int64              `json:"at"`
	Limit   float64            `json:"limit"`   // per second, or slots
	Granted float64            `json:"granted"` // per second, or calls in flight
	Waiting int                `json:"waiting"`
	Shares  map[string]float64 `json:"shares"`
	// Tags holds the use of the busiest tags, and of those that were among them before, in tokens per second; nil without quotas.
	Tags map[string]float64 `json:"tags,omitempty"`
}

// mostCharted is how many of the busiest tags a sample has. At most as many more have been among them.
const mostCharted = 8

// newSample returns the sample of a snapshot. before is the sample before it.
func newSample(s *snapshot, before *sample, now time.Time) sample {
	at := sample{At: now.UnixMilli(), Limit: s.PerSecond, Granted: s.PerSecond * s.Use, Waiting: s.Waiting, Shares: map[string]float64{}}
	if s.Ramp > 0 {
		at.Limit = min(at.Limit, s.Ramp)
	}
	for _, p := range s.Processors {
		at.Shares[p.ID] = p.Share
	}
	if s.Quotas != nil {
		at.Tags = s.Quotas.busiest(before)
	}
	return at
}

// busiest returns the use of the busiest tags, and of those of them that a sample before has charted, so that their lines go on.
func (t *quotaTable) busiest(before *sample) map[string]float64 {
	rows := slices.Clone(t.Tags)
	slices.SortStableFunc(rows, func(a, b tagRow) int { return cmp.Compare(b.Used, a.Used) })
	used := map[string]float64{}
	for i := range rows {
		r := &rows[i]
		charted := false
		if before != nil {
			_, charted = before.Tags[r.Name]
		}
		if charted && len(used) < 2*mostCharted || i < mostCharted && r.Used > 0 {
			used[r.Name] = r.Used
		}
	}
	return used
}
