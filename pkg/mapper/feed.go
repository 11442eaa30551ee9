package mapper

import (
	"context"
	"errors"
	"runtime/debug"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A feed hands the messages of one batch to the handler, in order, as they get their tokens, and answers the others.
type feed struct {
	*throttled

	in  <-chan batchmapsdk.Datum
	out chan batchmapsdk.Datum
	// cancel ends the handler's context.
	cancel context.CancelCauseFunc
	admit  *admission.Batch

	// done is closed when out is. The following fields may be read from then on.
	done chan struct{}
	// entries lists the messages that were handed on or answered, in order.
	entries []entry
	denied  bool // one of them was answered
	// err is the reason for an early end of the batch; nil when all of it is in entries.
	err      error
	panicked any // what a function of the user panicked with
}

// An entry records the outcome of a message.
type entry struct {
	id     string
	permit throttle.Permit
	// answer is for a denied message, which the handler never saw; otherwise nil.
	answer *[]batchmapsdk.Message
}

// errEnded is for functions of the user that end their goroutine.
var errEnded = errors.New("mapper: a function for cost, tag or denial ended its goroutine")

// newFeed returns a feed that uses the memory of entries.
func newFeed(t *throttled, entries []entry, in <-chan batchmapsdk.Datum, cancel context.CancelCauseFunc) *feed {
	return &feed{
		throttled: t,
		in:        in,
		out:       make(chan batchmapsdk.Datum, t.Ahead()),
		cancel:    cancel,
		admit:     t.Admitter.Batch(t.MaxWait),
		done:      make(chan struct{}),
		entries:   entries,
		err:       errEnded,
	}
}

// takeBack waits for the end, and gives back the tokens of messages that the handler was offered but did not take. It returns how many it
// took, and how many not. The handler has ended.
func (f *feed) takeBack() (taken, untaken int) {
	<-f.done
	for range f.out {
		untaken++
	}
	left := untaken // the last of those that were handed on
	for i := len(f.entries) - 1; i >= 0; i-- {
		switch e := &f.entries[i]; {
		case e.answer != nil: // the handler never saw it
		case left > 0:
			e.permit.Cancel()
			left--
		default:
			taken++
		}
	}
	return taken, untaken
}

// run feeds the handler until the batch is over, or nothing more can be handed on. Then it reads the rest, so that numaflow-go is never
// stuck with it. ctx is the batch's, handling the handler's, which descends from it.
func (f *feed) run(ctx, handling context.Context) {
	defer f.drain()
	defer close(f.done)
	defer close(f.out)
	defer func() {
		if f.panicked = recover(); f.panicked != nil {
			f.Abandoner.Logger().Error("panic in a function for cost, tag or denial", "stack", string(debug.Stack()))
		}
		if f.err != nil {
			f.cancel(f.err) // before the handler could take the end for that of the batch
		}
	}()
	f.err = f.handOn(ctx, handling)
	if f.err != nil && ctx.Done() != nil {
		f.Abandoner.Hold(handling, f.err)
	}
}

// handOn hands the batch on, message by message. It reads until numaflow-go closes the channel, which it also does when ctx has ended. A
// select over both takes some 80 ns more per message, twice as long as a draw. Reading does not end with the handler, which may have known
// that it had the whole batch.
func (f *feed) handOn(ctx, handling context.Context) error {
	for d := range f.in {
		if err := f.pass(handling, d); err != nil {
			return err
		}
	}
	if ctx.Err() != nil { // then this need not be the end of the batch
		return context.Cause(ctx)
	}
	return nil
}

// pass gets a message its tokens and hands it to the handler, or answers it.
func (f *feed) pass(handling context.Context, d batchmapsdk.Datum) error {
	tag, cost := "", 1
	if f.Priced() {
		tag, cost = f.Price(d.Keys(), batchDatum{d})
	}
	permit, err := f.admit.Admit(handling, tag, cost)
	if err != nil {
		answer, ok := f.Deny(handling, err, d.Keys(), batchDatum{d}, Nack().does)
		if !ok {
			return err
		}
		own := convert(answer.Items(), batchMessage)
		f.denied = true
		f.entries = append(f.entries, entry{id: d.Id(), answer: &own})
		return nil
	}
	select { // as above
	case f.out <- d:
	default:
		select {
		case f.out <- d:
		case <-handling.Done():
			permit.Cancel()
			return context.Cause(handling)
		}
	}
	f.entries = append(f.entries, entry{id: d.Id(), permit: permit})
	return nil
}

func (f *feed) drain() {
	for range f.in {
		continue
	}
}
