package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A SpentReport sets the amount spent of one budget window of a tag, whatever the store has counted.
type SpentReport struct {
	// Key names the tag, as Draw.Key does.
	Key uint64
	// Start and End bound the window, on the store's own clock in microseconds of Unix time. The clock must be in it.
	Start, End int64
	// Tokens is the number spent since Start: 0 to 4e15.
	Tokens int64
}

// A TagBucketSetter is a [TagBucketReader] that can also set the amount spent of a budget. It is for operators alone: no processor uses it. The stores
// of this project are TagBucketSetters.
type TagBucketSetter interface {
	TagBucketReader
	// SetSpent sets the amount spent of a window to Tokens, in one atomic step, and makes the tag bucket if there is none. Later draws count on
	// top, and tokens given back from earlier draws are taken off. It is no step in the life of the pool: nothing else changes but the
	// revision. It may be called from any number of goroutines at once. After an error that is not listed it may be called again: the step
	// may have been carried out.
	//
	// Errors: those of Store.Save but *ConflictError; *RequestError also for a window that the store's clock is not in, and when there is
	// no room for another tag bucket. An error may also wrap ErrNoTagBuckets or ErrTagBucketsLost.
	SetSpent(ctx context.Context, pool string, s SpentReport) error
}

// ErrTagBucketsLost is wrapped by the error of a TagBucketSetter that has lost its tag buckets while no draw has noticed that yet. The next draw of any tag
// notices it. Then the amounts that processors have seen count.
var ErrTagBucketsLost = errors.New("consensus: the store has lost what its tag buckets hold, and no pod has drawn since")

// Validate returns a *RequestError for the first field that no store accepts, or nil. Every [TagBucketSetter] calls it first.
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

// OutsideWindow returns the error for a window that the store's clock is not in. now is that clock, in microseconds of Unix time.
func (s *SpentReport) OutsideWindow(now int64) error {
	text := func(us int64) string { return time.UnixMicro(us).UTC().Format(time.RFC3339) }
	return &RequestError{
		"Start", fmt.Sprint("that of the window from ", text(s.Start), " to ", text(s.End)), "that of a window in which the store's clock is: " + text(now),
	}
}

// NoTagBucketLeft returns the error for when all tag buckets are needed.
func (s *SpentReport) NoTagBucketLeft() error {
	return &RequestError{"Key", fmt.Sprintf("%016x", s.Key), fmt.Sprint("one of the ", wire.MaxTagBuckets, " tags that the pool has tag buckets of already")}
}

// SetSpent changes the amount spent of one window, as [TagBucketSetter.SetSpent] does. As with Save, a Deferred store stamps the rest of the last
// step. It refuses only a window that has ended already, because its time may be old. The report must be valid. The error is [ErrNoPool] or a
// *RequestError.
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
	t := &granter{step: &step{rec: r, at: at, clock: r.Clock}, req: &Request{Draws: []Draw{{Key: s.Key}}}}
	r.TagBuckets, r.Names = slices.Clone(r.TagBuckets), r.Names.Clone() // copies of the record share them
	_, named := findTagBucket(r.Names.TagBuckets, s.Key)
	tagBucket := t.tagBucket(s.Key, named) // where it is, or where nothing drops it
	if tagBucket == nil {
		return s.NoTagBucketLeft()
	}
	d := &Draw{Budgets: []BudgetDraw{{Start: s.Start, End: s.End}}}
	t.windows(tagBucket, d)
	w, ok := tagBucket.window(s.Start)
	if !ok { // the time of a Deferred store may be before it
		tagBucket.Spent = slices.Insert(tagBucket.Spent, w, Spent{Start: s.Start, End: s.End})
	}
	tagBucket.Spent[w].Tokens = s.Tokens
	tagBucket.bound(d)
	r.Revision++
	return nil
}
