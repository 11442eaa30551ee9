package admission

import (
	"sync"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// exempt warns once of tokens that cannot be given back.
type exempt struct {
	seen every
	once sync.Once
}

// Exempt gives back the tokens of an exempt message. Tokens that are issued one by one, for a strict limit or one too low to be divided,
// cannot be given back: their time is over. That is logged once.
func (g *Admitter) Exempt(p throttle.Permit) {
	p.Cancel()
	if p.N() == 0 {
		return
	}
	if _, due := g.exempt.seen.add(1); !due { // a look a minute is enough
		return
	}
	if s, ok := g.Limiter.(interface{ Status() throttle.Status }); ok {
		if st := s.Status(); st.Limit.Strict || st.Lease.Issuing {
			g.exempt.once.Do(func() {
				g.logger().Warn("ExemptDropped has no effect: dropped messages cost tokens, for those of a strict limit, "+
					"and of one too low to be divided among the pods, cannot be given back", "limit", st.Name, "strict", st.Limit.Strict)
			})
		}
	}
}
