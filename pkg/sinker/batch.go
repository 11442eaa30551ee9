package sinker

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A batch is one call of Sink: the messages up to one end of transmission.
//
// One goroutine reads the messages. Without tags it also draws for them, one after the other, and so reads no further than the limit lets
// it. With tags it reads on. Messages that have to wait stand in a queue of their tag, with a goroutine of its own.
//
// A fast limit lets it admit a few messages before the handler takes them; see ahead. Those that the handler does not take in the end are
// taken back.
//
// Invariant: each message read ends up in exactly one of taken and answered, when takeBack has returned.
type batch struct {
	*wrapped

	parent context.Context    //nolint:containedctx // lives as long as the call that it belongs to
	stop   context.CancelFunc // ends all waiting: the handler has returned, or nothing can go on
	out    chan sinksdk.Datum // to the handler
	ended  chan struct{}      // closed when all is read and nobody waits
	turn   *admission.Batch   // bounds the waits

	running sync.WaitGroup // the queues

	mu       sync.Mutex
	queues   map[string]*queue  // by tag; only those in which somebody waits
	taken    []string           // the IDs of what the handler took, or has before it
	drawn    []message          // the same messages, if they are to be settled
	recent   []throttle.Permit  // of the last of them, as many as can be before it, in turn
	answered []sinksdk.Response // by the wrapper, for what the handler did not take
	denied   int
	untaken  int // the handler returned, or the context ended
	refused  int // by the limiter, for another reason than time
	refusal  error

	failed   bool
	panicked any
	exited   bool // by runtime.Goexit
}

// A message is one that the handler took, with its tokens.
type message struct {
	datum  sinksdk.Datum
	permit throttle.Permit
}

// A queue is where the messages of one tag stand in line.
type queue struct{ queue []item }

type item struct {
	datum sinksdk.Datum
	tag   string
	cost  int
}

// admitAll reads the batch to its end in every case: numaflow-go waits for that.
func (b *batch) admitAll(ctx context.Context, in <-chan sinksdk.Datum) {
	defer func() {
		b.running.Wait()
		close(b.out)
		for d := range in { // only after a panic
			_ = d
		}
		close(b.ended)
	}()
	b.guard(func() {
		for d := range in {
			if ctx.Err() != nil {
				b.leave(d)
				continue
			}
			b.admitOne(ctx, b.price(d))
		}
	})
}

func (b *batch) price(d sinksdk.Datum) item {
	it := item{datum: d, cost: 1}
	if b.Cost != nil {
		it.cost = b.Cost(nil, d)
	}
	if b.Tag != nil {
		it.tag = b.Tag(nil, d)
	}
	return it
}

// admitOne hands a message on, or puts it in line behind those of its tag.
func (b *batch) admitOne(ctx context.Context, it item) {
	if b.Tag == nil || b.inOrder {
		b.draw(ctx, it)
		return
	}
	b.mu.Lock()
	if l := b.queues[it.tag]; l != nil {
		l.queue = append(l.queue, it)
		b.mu.Unlock()
		return
	}
	b.mu.Unlock()
	// Nobody waits under this tag, and only this goroutine opens a queue.
	if permit, ok := b.tryDraw(it); ok {
		b.hand(ctx, it, permit)
		return
	}
	l := &queue{queue: []item{it}}
	b.mu.Lock()
	if b.queues == nil {
		b.queues = make(map[string]*queue)
	}
	b.queues[it.tag] = l
	b.mu.Unlock()
	b.running.Go(func() { b.guard(func() { b.serve(ctx, it.tag, l) }) })
}

// serve draws for the messages of one queue in turn, until it is empty.
func (b *batch) serve(ctx context.Context, tag string, l *queue) {
	for {
		b.mu.Lock()
		if len(l.queue) == 0 {
			delete(b.queues, tag)
			b.mu.Unlock()
			return
		}
		it := l.queue[0]
		l.queue[0] = item{}
		l.queue = l.queue[1:]
		b.mu.Unlock()
		b.draw(ctx, it)
	}
}

// tryDraw draws without waiting. It does not try a draw that would have to wait: a refused draw counts as refused and as demand, and the
// message would count again after its wait.
func (b *batch) tryDraw(it item) (throttle.Permit, bool) {
	l := b.Admitter.Limiter
	if t, ok := l.(throttle.Tagger); ok && it.tag != "" {
		l = t.ForTag(it.tag)
	}
	if t, ok := l.(interface {
		Throttled() (throttle.Throttling, bool)
	}); ok {
		if _, throttled := t.Throttled(); throttled {
			return throttle.Permit{}, false
		}
	}
	return l.TryAcquire(max(it.cost, 0))
}

// draw waits for the tokens of a message and hands it on.
func (b *batch) draw(ctx context.Context, it item) {
	drawing := ctx
	if hook.TellsTags(b.Admitter.Limiter) { // a tag's budget may send refused messages to the fallback sink
		drawing = hook.WithFallback(ctx)
	}
	permit, err := b.turn.Admit(drawing, it.tag, it.cost)
	if err != nil {
		b.refuse(ctx, it.datum, err)
		return
	}
	b.hand(ctx, it, permit)
}

// hand gives a message to the handler.
func (b *batch) hand(ctx context.Context, it item, permit throttle.Permit) {
	if !b.send(ctx, it.datum) {
		permit.Cancel()
		b.leave(it.datum)
		return
	}
	b.mu.Lock()
	if len(b.recent) > 0 {
		b.recent[len(b.taken)%len(b.recent)] = permit
	}
	b.taken = append(b.taken, it.datum.ID())
	if b.settle != nil {
		b.drawn = append(b.drawn, message{it.datum, permit})
	}
	b.mu.Unlock()
}

// send reports whether the handler took a message before ctx ended.
func (b *batch) send(ctx context.Context, d sinksdk.Datum) bool {
	if ctx.Err() != nil {
		return false
	}
	select { // the usual case by itself, which is cheaper
	case b.out <- d:
		return true
	default:
	}
	select {
	case b.out <- d:
		return true
	case <-ctx.Done():
		return false
	}
}

// takeBack waits until all is read, and answers for messages that the handler was offered but did not take. The handler has ended.
func (b *batch) takeBack() {
	<-b.ended
	var left []sinksdk.Datum
	for d := range b.out {
		left = append(left, d)
	}
	kept := len(b.taken) - len(left)
	for i, d := range left {
		b.recent[(kept+i)%len(b.recent)].Cancel()
		b.leave(d)
	}
	b.taken = b.taken[:kept]
	if b.settle != nil {
		b.drawn = b.drawn[:kept]
	}
}

// refuse answers for a message that gets no tokens.
func (b *batch) refuse(ctx context.Context, d sinksdk.Datum, err error) {
	if b.parent.Done() != nil {
		// When the limiter was closed: a failure would be retried at once, again and again, until the stream ends.
		b.Abandoner.Hold(ctx, err)
	}
	if ctx.Err() != nil {
		b.leave(d) // never what an action makes up
		return
	}
	var denied *admission.Denied
	if e, ok := errors.AsType[*throttle.Error](err); ok && e.Fallback {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.answered = append(b.answered, sinksdk.ResponseFallback(d.ID()))
		return
	}
	if errors.As(err, &denied) && !b.OnDenied.Waits() {
		r := b.OnDenied.Answer(ctx, nil, d, denied)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.answered = append(b.answered, r)
		b.denied++
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answered = append(b.answered, sinksdk.ResponseFailure(d.ID(), "not handled: "+err.Error()))
	b.refused++
	b.refusal = err
}

// leave answers for a message that the handler will not get.
func (b *batch) leave(d sinksdk.Datum) {
	why := "the handler returned before it took this message"
	if b.parent.Err() != nil {
		why = context.Cause(b.parent).Error()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answered = append(b.answered, sinksdk.ResponseFailure(d.ID(), "not handled: "+why))
	b.untaken++
}

// guard runs f in a goroutine of the wrapper's own. When a user's function panics in it, the batch ends, and Sink panics with the same
// value once the handler has returned.
func (b *batch) guard(f func()) {
	returned := false
	defer func() {
		if returned {
			return
		}
		p := recover() // nil: runtime.Goexit
		b.mu.Lock()
		first := !b.failed
		if first {
			b.failed, b.panicked, b.exited = true, p, p == nil
		}
		b.mu.Unlock()
		if first && p != nil {
			b.Abandoner.Logger().Error("panic while a message was admitted, failing the stream", "panic", p, "stack", string(debug.Stack()))
		}
		b.stop()
	}()
	f()
	returned = true
}
