package driver

import (
	"fmt"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A Death names an incarnation whose process is known to be dead: nothing draws on its claim now or later. Last is the request whose answer
// it took last, zero before the first one. Unanswered are the requests that it had sent since, by rising Seq. They tell it from a clone,
// whose death proves nothing.
type Death struct {
	Incarnation string   `json:"incarnation"`
	Last        Ticket   `json:"last"`
	Unanswered  []Ticket `json:"unanswered"`
}

// bury closes the rows of incarnations whose processes are dead, so that they claim nothing. The rows stay, because their packets may still
// arrive. A row is that of a clone, which may live, if the dead process has not sent its newest request or if it is closed as such. Such a
// row keeps its claim.
func (st *step) bury(req *Request) {
	r := st.rec
	for _, d := range req.Dead {
		i, ok := r.find(RowKey{req.ID, d.Incarnation})
		if !ok || d.Incarnation == req.Incarnation {
			continue
		}
		row := &r.Rows[i]
		switch {
		case row.State == RowLeft || row.State == RowCloned:
		case !row.sentBy(d.Last, d.Unanswered):
			row.State = RowCloned
		default:
			row.State, row.Holding = RowReplaced, Holding{}
		}
	}
}

func (r *Request) validateDead() error {
	if len(r.Dead) > wire.MaxDead {
		return &RequestError{"Dead", fmt.Sprint(len(r.Dead), " incarnations"), fmt.Sprint("at most ", wire.MaxDead)}
	}
	for i, d := range r.Dead {
		if err := d.Validate(); err != nil {
			return err
		}
		if d.Incarnation == r.Incarnation {
			return &RequestError{"Dead", "the sender itself", "other incarnations of its ID"}
		}
		if slices.ContainsFunc(r.Dead[:i], func(e Death) bool { return e.Incarnation == d.Incarnation }) {
			return &RequestError{"Dead", fmt.Sprintf("%.40q twice", d.Incarnation), "each incarnation once"}
		}
	}
	return nil
}

// Validate returns a *RequestError for a death that no request names, or nil.
func (d *Death) Validate() error {
	if !wire.IsName(d.Incarnation) {
		return badName("Dead", d.Incarnation)
	}
	if err := validateTickets(d.Unanswered, d.Last.Seq, maxRevision); err != nil {
		return &RequestError{"Dead", fmt.Sprintf("%.40q with requests out of order", d.Incarnation), "at most 32, with rising numbers above Last"}
	}
	return nil
}
