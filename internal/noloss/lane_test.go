package noloss

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// A lane is one kind of handler with its driver: one process after another, and
// the messages that they are offered.
type lane struct {
	t    testing.TB
	ctx  context.Context //nolint:containedctx // of the whole lane
	job  job
	dir  string
	opts []dataplane.Option

	mu       sync.Mutex
	messages []message
	answered int
	proc     *process
	feed     feed
	// changed is closed when there is another feed.
	changed chan struct{}
	feeds   []feed
	// cut says that a stream of the process was broken off, with which it may end, and
	// withStream how many processes did.
	cut        bool
	withStream int
	// ends are how long processes took to end, once nothing held them.
	ends []time.Duration

	queue chan int      // messages to be sent
	all   chan struct{} // closed when every message was answered
}

// newLane starts the first process of a lane of so many messages.
func newLane(ctx context.Context, t testing.TB, j job, messageCount int, opts ...dataplane.Option) *lane {
	t.Helper()
	l := &lane{
		t: t, ctx: ctx, job: j, dir: dataplane.Dir(t), opts: opts,
		messages: make([]message, messageCount), queue: make(chan int, messageCount),
		changed: make(chan struct{}), all: make(chan struct{}),
	}
	l.job.Notes = filepath.Join(l.dir, "notes")
	l.job.Messages = messageCount
	for id := range messageCount {
		l.queue <- id
	}
	require.NoError(t, l.replace())
	return l
}

// replace starts a process and opens its stream.
func (l *lane) replace() error {
	p := startProcess(l.t, l.dir, l.job)
	l.mu.Lock()
	l.proc, l.cut = p, false
	l.mu.Unlock()
	return l.redial()
}

// revive starts another process if this one has ended with a stream of its own.
func (l *lane) revive() error {
	switch {
	case !l.proc.Ends(0):
		return nil
	case !l.cut:
		return errors.New("the process has ended by itself")
	}
	l.withStream++
	f, _ := l.current()
	f.Abort()
	return l.replace()
}

// redial opens another stream to the process.
func (l *lane) redial() error {
	ctx, cancel := context.WithCancelCause(l.ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-l.proc.Gone:
			cancel(errors.New("the process has ended"))
		case <-ctx.Done():
		}
	}()
	f, err := openFeed(ctx, l.proc.job, l.opts...)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.feed, l.feeds = f, append(l.feeds, f)
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// current returns the feed, and what is closed when there is another.
func (l *lane) current() (feed, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.feed, l.changed
}

// work offers messages, so many at once, until all were answered. Any number of
// goroutines may do so.
func (l *lane) work(atOnce int) {
	for {
		ids := l.take(atOnce)
		if len(ids) == 0 {
			return
		}
		f, changed := l.current()
		outcomes, err := f.offer(l.ctx, ids)
		l.book(ids, outcomes, err)
		if err != nil {
			select {
			case <-changed:
			case <-l.all:
				return
			case <-l.ctx.Done():
				return
			}
		}
	}
}

// take waits for a message to send, and takes as many more as are there.
func (l *lane) take(atMost int) (ids []int) {
	select {
	case id := <-l.queue:
		ids = append(ids, id)
	case <-l.all:
		return nil
	case <-l.ctx.Done():
		return nil
	}
	for len(ids) < atMost {
		select {
		case id := <-l.queue:
			ids = append(ids, id)
		default:
			return ids
		}
	}
	return ids
}

// book enters what came of messages, and queues those that have to be sent again.
func (l *lane) book(ids []int, outcomes []outcome, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, id := range ids {
		m := &l.messages[id]
		switch {
		case errors.Is(err, dataplane.ErrNotSent):
			l.queue <- id
		case err != nil, outcomes[i].nacked:
			m.Sent++
			m.Failed++
			l.queue <- id
		default:
			m.Sent++
			m.Answered++
			m.Wrong = outcomes[i].wrong
			l.answer()
		}
	}
}

// answer counts a message that was answered for good.
func (l *lane) answer() {
	l.answered++
	if l.answered == len(l.messages) {
		close(l.all)
	}
}

func (l *lane) answers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered
}

// awaitAnswers waits until so many messages were answered.
func (l *lane) awaitAnswers(n int) error {
	for l.answers() < n {
		if err := l.revive(); err != nil {
			return err
		}
		select {
		case <-l.ctx.Done():
			return fmt.Errorf("%d of %d messages answered: %w", l.answers(), len(l.messages), context.Cause(l.ctx))
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// awaitFlight waits until something was sent over the present stream.
func (l *lane) awaitFlight() error {
	for f, _ := l.current(); f.Stats().Sent == 0; {
		select {
		case <-l.ctx.Done():
			return fmt.Errorf("nothing was sent: %w", context.Cause(l.ctx))
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// ended waits for the process to end by itself, and notes how long that took.
func (l *lane) ended() error {
	took, err := l.proc.end(exitWithin)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, took)
	return err
}

// finish ends the lane in good order when all messages were answered, and judges.
func (l *lane) finish() (verdict, error) {
	err := l.awaitAnswers(len(l.messages)) // the judge says what is missing
	f, _ := l.current()
	err = errors.Join(err, f.Close())
	err = errors.Join(err, l.proc.signal(sigterm), l.ended())
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, note := range readNotes(l.t, l.job.Notes) {
		id, convErr := strconv.Atoi(note)
		if convErr != nil || id < 0 || id >= len(l.messages) {
			err = errors.Join(err, fmt.Errorf("a handler has noted %q, which was never sent", note))
			continue
		}
		l.messages[id].Finished++
	}
	return judge(l.job.Kind, l.messages), errors.Join(err, l.accounted())
}

// accounted compares what the streams have counted with what was booked.
func (l *lane) accounted() error {
	var streams, booked dataplane.Stats
	for _, f := range l.feeds {
		s := f.Stats()
		streams.Sent += s.Sent
		streams.Answered += s.Answered
		streams.Failed += s.Failed
		streams.Outstanding += s.Outstanding
	}
	for _, m := range l.messages {
		booked.Sent += m.Sent
		booked.Answered += m.Answered
		booked.Failed += m.Failed
	}
	if streams.Sent != booked.Sent || streams.Answered+streams.Failed != streams.Sent || streams.Outstanding != 0 {
		return fmt.Errorf("%s: the streams have counted %+v, the driver %+v", l.job.Kind, streams, booked)
	}
	return nil
}
