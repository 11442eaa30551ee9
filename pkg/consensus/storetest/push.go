package storetest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// pushCases are about news, for stores that carry any.
var pushCases = []testCase{
	{name: "news reach everybody who watches the pool, the sender included, and nobody else", run: newsReachThePool},
	{name: "news need no record, change none, and are kept for nobody", run: newsAreNotKept},
	{name: "who has stopped watching hears nothing more", run: newsEnd},
	{name: "news of any bytes and sizes come as they were sent", run: newsAreExact},
	{name: "malformed news are a RequestError", run: malformedNews},
	{name: "who hears news can push at once", run: newsAnswered},
}

// pushServerCases are those that disturb the server.
var pushServerCases = []testCase{
	{name: "news are heard again after the server was restarted", needs: func(h *Harness) bool { return h.Restart != nil }, run: newsAgain},
}

// pusher returns a handle of its own that carries news, or skips the case.
func (p *pool) pusher() driver.Pusher {
	p.Helper()
	s, ok := p.New(p).(driver.Pusher)
	if !ok {
		p.Skip("this store carries no news")
	}
	return s
}

// ears keep the news received.
type ears struct {
	mu       sync.Mutex
	received [][]byte
}

func (e *ears) hear(news []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.received = append(e.received, news)
}

// count returns how often news were received.
func (e *ears) count(news string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.received {
		if string(h) == news {
			n++
		}
	}
	return n
}

// watch listens to the news of a pool until the end of the case.
func (p *pool) watch(s driver.Pusher, name string) (*ears, func()) {
	p.Helper()
	e := &ears{}
	var stop func()
	require.NoError(p, p.call(func(ctx context.Context) (err error) {
		stop, err = s.Watch(ctx, name, e.hear)
		return err
	}))
	p.Cleanup(stop)
	return e, stop
}

func (p *pool) push(s driver.Pusher, name, news string) {
	p.Helper()
	require.NoError(p, p.call(func(ctx context.Context) error { return s.Push(ctx, name, []byte(news)) }))
}

// reach pushes marks until all receive one: from then on news reach them.
func (p *pool) reach(s driver.Pusher, name string, all ...*ears) {
	p.Helper()
	i := 0
	p.eventually("everybody hears news", func() bool {
		i++
		mark := fmt.Sprint("mark ", name, i)
		p.push(s, name, mark)
		return soon(func() bool { return receivedBy(mark, all...) })
	})
}

// soon reports whether something comes true within a second.
func soon(so func() bool) bool {
	for began := time.Now(); time.Since(began) < time.Second; pause(time.Millisecond) {
		if so() {
			return true
		}
	}
	return false
}

func receivedBy(news string, all ...*ears) bool {
	for _, e := range all {
		if e.count(news) == 0 {
			return false
		}
	}
	return true
}

func newsReachThePool(p *pool) {
	a, b, c := p.pusher(), p.pusher(), p.pusher()
	ea, _ := p.watch(a, p.name)
	eb, _ := p.watch(b, p.name)
	eb2, _ := p.watch(b, p.name)
	other, _ := p.watch(c, p.name+"/other")
	p.reach(a, p.name, ea, eb, eb2)
	p.reach(c, p.name+"/other", other)
	for i := range 50 {
		from := []driver.Pusher{a, b, c}[i%3]
		p.push(from, p.name, fmt.Sprint("news ", i))
	}
	p.eventually("all news are heard", func() bool {
		for i := range 50 {
			if !receivedBy(fmt.Sprint("news ", i), ea, eb, eb2) {
				return false
			}
		}
		return true
	})
	p.push(c, p.name+"/other", "the end")
	p.eventually("the other pool hears its own", func() bool { return receivedBy("the end", other) })
	for i := range 50 {
		news := fmt.Sprint("news ", i)
		require.Zero(p, other.count(news), "another pool's")
		for _, e := range []*ears{ea, eb, eb2} {
			require.Equal(p, 1, e.count(news), "each once")
		}
	}
}

func newsAreNotKept(p *pool) {
	s := p.pusher()
	early, _ := p.watch(s, p.name)
	p.reach(s, p.name, early)
	p.push(s, p.name, "before anybody was there")
	_, _, err := p.load()
	require.ErrorIs(p, err, driver.ErrNoPool)
	a, _ := p.open()
	before := a.exchange(change("limit", 0, 5, "there"))
	late, _ := p.watch(s, p.name)
	for range 20 {
		p.push(s, p.name, "news")
	}
	p.reach(s, p.name, late)
	require.Zero(p, late.count("before anybody was there"))
	ans := a.exchange(loaded("limit", 5))
	require.Equal(p, before.Revision+1, ans.Revision)
	docs, _, err := p.load()
	require.NoError(p, err)
	p.requireDocuments(docs, doc("limit", 5, "there"))
}

func newsEnd(p *pool) {
	s := p.pusher()
	stays, _ := p.watch(s, p.name)
	goes, stop := p.watch(s, p.name)
	p.reach(s, p.name, stays, goes)
	stop()
	stop()
	p.push(s, p.name, "one more may come")
	p.eventually("the other still hears", func() bool { return receivedBy("one more may come", stays) })
	p.push(s, p.name, "not this one")
	p.eventually("the other still hears", func() bool { return receivedBy("not this one", stays) })
	require.Zero(p, goes.count("not this one"))
	again, _ := p.watch(s, p.name)
	p.reach(s, p.name, again)
}

func newsAreExact(p *pool) {
	s := p.pusher()
	e, _ := p.watch(s, p.name)
	p.reach(s, p.name, e)
	all := make([]byte, wire.MaxNewsBytes)
	for i := range all {
		all[i] = byte(i * 7)
	}
	for _, news := range [][]byte{all, {0}, []byte("\r\n"), []byte("PUB x 1\r\n$5\r\n"), []byte(`{"form":1}`)} {
		p.push(s, p.name, string(news))
		p.eventually("the news are heard", func() bool { return e.count(string(news)) == 1 })
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	require.True(p, bytes.Equal(all, e.received[len(e.received)-5]))
}

func newsAnswered(p *pool) {
	a, b := p.pusher(), p.pusher()
	ea, _ := p.watch(a, p.name)
	stop, err := b.Watch(p.Context(), p.name, func(news []byte) {
		if string(news) == "question" {
			_ = b.Push(p.Context(), p.name, []byte("answer"))
		}
	})
	require.NoError(p, err)
	p.Cleanup(stop)
	p.eventually("the answer comes", func() bool {
		p.push(a, p.name, "question")
		return soon(func() bool { return receivedBy("answer", ea) })
	})
}

func newsAgain(p *pool) {
	a, b := p.pusher(), p.pusher()
	ea, _ := p.watch(a, p.name)
	eb, _ := p.watch(b, p.name)
	p.reach(a, p.name, ea, eb)
	p.Restart(p)
	p.reach(b, p.name, ea, eb)
}
