package sinker_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // numaflow-go logs every panic with its stack
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// datum is a message whose payload is its ID. "tag:id" has a tag in its first key.
type datum struct{ id string }

func (d datum) ID() string                              { return d.id }
func (d datum) Value() []byte                           { return []byte(d.id) }
func (d datum) EventTime() time.Time                    { return time.Time{} }
func (d datum) Watermark() time.Time                    { return time.Time{} }
func (d datum) Headers() map[string]string              { return map[string]string{"id": d.id} }
func (d datum) UserMetadata() *sinksdk.UserMetadata     { return nil }
func (d datum) SystemMetadata() *sinksdk.SystemMetadata { return nil }

func (d datum) Keys() []string {
	tag, _, ok := strings.Cut(d.id, ":")
	if !ok {
		return nil
	}
	return []string{tag}
}

// batchOf returns a channel like numaflow-go's, which gives the messages of one batch
// and is closed then.
func batchOf(ids ...string) <-chan sinksdk.Datum {
	ch := make(chan sinksdk.Datum)
	go func() {
		defer close(ch)
		for _, id := range ids {
			ch <- datum{id}
		}
	}()
	return ch
}

func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	return ids
}

// handler answers every message with success and records what it took.
type handler struct {
	mu    sync.Mutex
	taken []string
	each  func(id string) // called for each message that it took
}

func (h *handler) Sink(_ context.Context, data <-chan sinksdk.Datum) sinksdk.Responses {
	responses := sinksdk.ResponsesBuilder()
	for d := range data {
		h.mu.Lock()
		h.taken = append(h.taken, d.ID())
		h.mu.Unlock()
		if h.each != nil {
			h.each(d.ID())
		}
		responses = responses.Append(sinksdk.ResponseOK(d.ID()))
	}
	return responses
}

func (h *handler) Taken() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.taken...)
}

// An outcome is how a call of Sink ended.
type outcome struct {
	returned  bool
	responses sinksdk.Responses
	panicked  any // nil with returned false: the goroutine exited
}

// call runs s in a goroutine of its own, which it may end.
func call(ctx context.Context, s sinksdk.Sinker, in <-chan sinksdk.Datum) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			done <- o
		}()
		o.responses = s.Sink(ctx, in)
		o.returned = true
	}()
	return done
}

func ok(ids ...string) sinksdk.Responses {
	responses := sinksdk.ResponsesBuilder()
	for _, id := range ids {
		responses = responses.Append(sinksdk.ResponseOK(id))
	}
	return responses
}

// perTag is a limiter with a script for each tag.
type perTag struct {
	*throttletest.Limiter

	tags map[string]*throttletest.Limiter
}

func (p *perTag) ForTag(tag string) throttle.Limiter {
	if l, ok := p.tags[tag]; ok {
		return l
	}
	return p.Limiter
}

// byKey is the option that most tests with tags use.
func byKey(d sinksdk.Datum) string {
	if keys := d.Keys(); len(keys) > 0 {
		return keys[0]
	}
	return ""
}

// logs returns a logger and what it logged so far.
func logs() (*slog.Logger, func() string) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})), b.String
}
