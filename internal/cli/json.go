package cli

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
)

// A status is what --json prints of a pool. Shares and demand are fractions of the limit, times
// are as Go writes durations.
type status struct {
	Pool       string      `json:"pool"`
	Limit      *rate       `json:"limit"`    // in force; null: nobody tells one
	Override   *rate       `json:"override"` // null: none
	Ramp       *standing   `json:"ramp"`     // null: none
	Agreed     bool        `json:"agreed"`
	PoolSize   int         `json:"poolSize"`
	Processors []processor `json:"processors"`
	Documents  []document  `json:"documents"`
	Unreadable []string    `json:"unreadable"` // documents of a later version
}

type rate struct {
	Max  int    `json:"max"`
	Per  string `json:"per,omitempty"`
	Hard bool   `json:"hard,omitempty"`
}

// A standing is where a ramp stands.
type standing struct {
	Tokens float64 `json:"tokens"`
	Per    string  `json:"per"`
}

type processor struct {
	ID       string  `json:"id"`
	Share    float64 `json:"share"`
	Demand   float64 `json:"demand"`
	PoolSize int     `json:"poolSize"`
	Limit    *rate   `json:"limit"` // as configured; null: it tells none
	Note     string  `json:"note"`
	Silent   string  `json:"silent"`
}

type document struct {
	Name    string `json:"name"`
	Version uint64 `json:"version"`
}

func newStatus(o *consensus.Overview) status {
	s := status{
		Pool: o.Pool, Limit: rateOf(o.Max, o.Per, false), Override: rateOf(o.Override.Max, o.Override.Per, false),
		Agreed: o.Agreed, PoolSize: o.PoolSize,
		Processors: []processor{}, Documents: []document{}, Unreadable: append([]string{}, o.Unreadable...),
	}
	if o.Ramp > 0 {
		s.Ramp = &standing{o.Ramp, o.RampPer.String()}
	}
	for i := range o.Processors {
		p := &o.Processors[i]
		s.Processors = append(s.Processors, processor{
			ID: p.ID, Share: p.Claim.Fraction(), Demand: p.Demand.Fraction(), PoolSize: p.PoolSize,
			Limit: rateOf(p.Max, p.Per, p.Hard), Note: p.Note, Silent: p.Silent.String(),
		})
	}
	for _, d := range o.Documents {
		s.Documents = append(s.Documents, document{d.Name, uint64(d.Version)})
	}
	return s
}

func rateOf(tokens int, per time.Duration, hard bool) *rate {
	if tokens == 0 {
		return nil
	}
	r := &rate{Max: tokens, Hard: hard}
	if per > 0 {
		r.Per = per.String()
	}
	return r
}
