package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A SpentReport says what is spent of one budget window of a tag, whatever the store has counted.
type SpentReport struct {
	// Key names the tag, as Draw.Key does.
	Key uint64
	// Start and End are those of the window, on the store's own clock in microseconds of Unix time. The clock must be in it.
	Start, End int64
	// Tokens is what is spent since Start: 0 to 4e15.
	Tokens int64
}

// A TillSetter is a TillReader that can also set what is spent of a budget. It is for operators alone: no processor does
// so. The stores of this project are TillSetters.
type TillSetter interface {
	TillReader
	// SetSpent makes Tokens what is spent of a window, in one step with all that draws do, and makes the till if there is
	// none. What is drawn after that counts on top, and what is given back of earlier draws is taken off. It is no step in the
	// life of the pool: nothing else changes but the revision. It may be called from any number of goroutines at once, and
	// called again after an error that is not listed, for then it may have been carried out.
	//
	// Errors: those of Store.Save but *ConflictError; *RequestError also for a window in which the store's clock is not, and when
	// there is no room for another till; one that wraps ErrNoTills; and one that wraps ErrTillsLost.
	SetSpent(ctx context.Context, pool string, s SpentReport) error
}

// ErrTillsLost is wrapped by the error of a TillSetter that has lost its tills, and of which no draw has noticed that yet.
// The next draw of any tag does so, and what processors have seen counts then.
var ErrTillsLost = errors.New("consensus: the store has lost what its tills hold, and no processor has drawn since")

// Validate returns a *RequestError for the first field with which no store sets what is spent, or nil. Every TillSetter calls
// it first.
func (s *SpentReport) Validate(pool string) error {
	if err := ValidatePool(pool); err != nil {
		return err
	}
	b := BudgetDraw{Start: s.Start, End: s.End, Seen: s.Tokens}
	err := b.validate()
	if bad := (*RequestError)(nil); errors.As(err, &bad) {
		bad.Field = map[string]string{"Draws.Budgets.Start": "Start", "Draws.Budgets.Seen": "Tokens"}[bad.Field]
	}
	return err
}

// OutsideWindow is the error for a window in which the store's clock is not, by which it is now microseconds of Unix time.
func (s *SpentReport) OutsideWindow(now int64) error {
	text := func(us int64) string { return time.UnixMicro(us).UTC().Format(time.RFC3339) }
	return &RequestError{
		"Start", fmt.Sprint("that of the window from ", text(s.Start), " to ", text(s.End)), "that of a window in which the store's clock is: " + text(now),
	}
}

// NoTillLeft is the error when all tills are needed.
func (s *SpentReport) NoTillLeft() error {
	return &RequestError{"Key", fmt.Sprintf("%016x", s.Key), fmt.Sprint("one of the ", MaxTills, " tags that the pool has tills of already")}
}

// SetSpent changes what is spent of one window, as TillSetter.SetSpent does. As with Save, a Deferred store stamps what the last
// step has left; there only a window that has ended already is refused, for its time may be old. The report must be valid. The
// error is ErrNoPool or a *RequestError.
func (r *Record) SetSpent(s *SpentReport, at At) error {
	if r.Revision == 0 {
		return ErrNoPool
	}
	if at.Now >= s.End || at.Now < s.Start && !at.Deferred {
		return s.OutsideWindow(at.Now)
	}
	if at.Deferred {
		st := r.begin(0, at)
		st.stampLast()
		r.Clock, r.Wall = st.clock, at.Now
	}
	t := &teller{step: &step{rec: r, at: at, clock: r.Clock}, req: &Request{Draws: []Draw{{Key: s.Key}}}}
	r.Tills, r.Names = slices.Clone(r.Tills), r.Names.Clone() // copies of the record share them
	_, named := findTill(r.Names.Tills, s.Key)
	till := t.till(s.Key, named) // where it is, or where nothing drops it
	if till == nil {
		return s.NoTillLeft()
	}
	d := &Draw{Budgets: []BudgetDraw{{Start: s.Start, End: s.End}}}
	t.windows(till, d)
	w, ok := till.window(s.Start)
	if !ok { // the time of a Deferred store may be before it
		till.Spent = slices.Insert(till.Spent, w, Spent{Start: s.Start, End: s.End})
	}
	till.Spent[w].Tokens = s.Tokens
	till.bound(d)
	r.Revision++
	return nil
}
