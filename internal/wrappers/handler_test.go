package wrappers

import (
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

	"github.com/stretchr/testify/require"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"
	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // numaflow-go logs every panic with its stack
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// A message becomes a datum of any kind: its payload is its ID, its keys are "key" and its tag, its headers tag and cost. An ID such as
// "blue:7" has the tag blue.
type message string

func (m message) tag() string {
	tag, _, ok := strings.Cut(string(m), ":")
	if !ok {
		return ""
	}
	return tag
}

func (m message) keys() []string { return []string{"key", m.tag()} }

func (m message) headers() map[string]string {
	_, cost, ok := strings.Cut(string(m), ":")
	if !ok {
		return nil
	}
	return map[string]string{"tag": m.tag(), "cost": cost}
}

// eventTime and watermark are those of all messages.
var (
	eventTime = time.Unix(1_700_000_000, 0).UTC()
	watermark = eventTime.Add(-time.Minute)
)

// newMetadata is that of all messages of the kinds that have any, if no socket is between.
func newMetadata() *mapsdk.UserMetadata {
	meta := mapsdk.NewUserMetadata()
	meta.AddKV("group", "k", []byte("meta"))
	return meta
}

// An output is what a handler of the first four kinds returns. Its text is value/keys#tags.
type output struct {
	value      string
	keys, tags []string
}

func textOf(value string, keys, tags []string) string {
	text := value
	if len(keys) > 0 {
		text += "/" + strings.Join(keys, ",")
	}
	if len(tags) > 0 {
		text += "#" + strings.NewReplacer(mapsdk.DROP, "drop", mapsdk.NACK, "nack").Replace(strings.Join(tags, ","))
	}
	return text
}

func drop() output { return output{tags: []string{mapsdk.DROP}} }

// A handler is one of each kind.
type handler struct {
	begin   func()                                // called at the beginning of a batch
	do      func(ctx context.Context, id message) // for each message
	outputs func(id message) []output             // nil: one, "handled"
	quits   bool                                  // it takes no more of a batch than most
	most    int
	end     func() // called when it has what it takes of a batch

	mu    sync.Mutex
	taken []string
	seen  []string // each message with all that it came with
}

type datum interface {
	Value() []byte
	Headers() map[string]string
	EventTime() time.Time
	Watermark() time.Time
}

type contextKey struct{}

// Taken returns the messages that the handler has seen.
func (h *handler) Taken() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.taken...)
}

func (h *handler) take(ctx context.Context, keys []string, d datum) []output {
	id, meta := message(d.Value()), "none"
	if d, has := d.(interface{ UserMetadata() *mapsdk.UserMetadata }); has {
		meta = string(d.UserMetadata().Value("group", "k"))
	}
	times := d.EventTime().Equal(eventTime) && d.Watermark().Equal(watermark)
	h.mu.Lock()
	h.taken = append(h.taken, string(id))
	h.seen = append(h.seen, fmt.Sprintln(id, keys, d.Headers(), times, meta, ctx.Value(contextKey{})))
	h.mu.Unlock()
	if h.do != nil {
		h.do(ctx, id)
	}
	if h.outputs != nil {
		return h.outputs(id)
	}
	return []output{{value: "handled"}}
}

func (h *handler) Map(ctx context.Context, keys []string, d mapsdk.Datum) (out mapsdk.Messages) {
	for _, o := range h.take(ctx, keys, d) {
		out = append(out, mapsdk.NewMessage([]byte(o.value)).WithKeys(o.keys).WithTags(o.tags))
	}
	return out
}

func (h *handler) Transform(ctx context.Context, keys []string, d transformsdk.Datum) (out transformsdk.Messages) {
	for _, o := range h.take(ctx, keys, d) {
		out = append(out, transformsdk.NewMessage([]byte(o.value), d.EventTime()).WithKeys(o.keys).WithTags(o.tags))
	}
	return out
}

func (h *handler) MapStream(ctx context.Context, keys []string, d mapstreamsdk.Datum, to chan<- mapstreamsdk.Message) {
	defer close(to) // as the examples of numaflow-go do
	for _, o := range h.take(ctx, keys, d) {
		to <- mapstreamsdk.NewMessage([]byte(o.value)).WithKeys(o.keys).WithTags(o.tags)
	}
}

// batch takes messages one by one.
func (h *handler) batch(next func() bool) {
	if h.begin != nil {
		h.begin()
	}
	for n := 0; (!h.quits || n < h.most) && next(); {
		n++
	}
	if h.end != nil {
		h.end()
	}
}

func (h *handler) BatchMap(ctx context.Context, in <-chan batchmapsdk.Datum) (out batchmapsdk.BatchResponses) {
	h.batch(func() bool {
		d, ok := <-in
		if !ok {
			return false
		}
		r := batchmapsdk.NewBatchResponse(d.Id())
		for _, o := range h.take(ctx, d.Keys(), d) {
			r = r.Append(batchmapsdk.NewMessage([]byte(o.value)).WithKeys(o.keys).WithTags(o.tags))
		}
		out = append(out, r)
		return true
	})
	return out
}

func (h *handler) Sink(ctx context.Context, in <-chan sinksdk.Datum) (out sinksdk.Responses) {
	h.batch(func() bool {
		d, ok := <-in
		if !ok {
			return false
		}
		h.take(ctx, d.Keys(), d)
		out = append(out, sinksdk.ResponseOK(d.ID()))
		return true
	})
	return out
}

// A spring is a source with one message for each Read.
type spring struct {
	sourcesdk.Sourcer
	*handler
}

func (s *spring) Read(ctx context.Context, _ sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	s.take(ctx, nil, &sinkDatum{"a"})
	out <- sourcesdk.NewMessage([]byte("handled"), sourcesdk.Offset{}, time.Time{})
}

// options are a wrapper's. Zero values leave them out.
type options struct {
	cost func(id message) int
	tag  func(id message) string
	// costs and tags are ready-made functions, and onDenied an action, in the words of the proxy's settings. The action "func" calls deny.
	costs, tags, onDenied string
	deny                  func(id message, why *throttle.Error)
	maxWait, budget       time.Duration
	exempt                bool
	log                   *slog.Logger
}

// second is a bounded wait with an action.
func second(onDenied string) options { return options{maxWait: time.Second, onDenied: onDenied} }

// An answer is what the platform gets for a message: the text of its outputs, or of a sink's response.
type answer struct {
	text   string
	delay  time.Duration // of a nack
	reason string
}

// An ending is how a call ended: with answers, a panic or neither, which is Goexit.
type ending struct {
	returned bool
	answers  []answer
	panicked any
}

func (e ending) texts() []string {
	texts := []string{}
	for _, a := range e.answers {
		texts = append(texts, a.text)
	}
	return texts
}

// answered is the ending of a call with these answers.
func answered(texts ...string) ending {
	e := ending{returned: true}
	for _, text := range texts {
		e.answers = append(e.answers, answer{text: text})
	}
	return e
}

// start calls a wrapper in a goroutine of its own, which it may end, and sends it messages as numaflow-go does. The channel of a batch is
// to be read to its end however the call ends.
func (k *kind) start(ctx context.Context, w any, ids ...message) <-chan ending {
	in, sent, done := make(chan message), make(chan struct{}), make(chan ending, 1)
	go func() {
		defer close(sent)
		defer close(in)
		for _, id := range ids {
			in <- id
		}
	}()
	ended := k.feed(ctx, w, in)
	go func() {
		e := <-ended
		if k.batches {
			<-sent
		}
		done <- e
	}()
	return done
}

// feed is start for messages that the test sends itself.
func (k *kind) feed(ctx context.Context, w any, in <-chan message) <-chan ending {
	done := make(chan ending, 1)
	go func() {
		var e ending
		defer func() {
			if !e.returned {
				e.panicked = recover()
			}
			done <- e
		}()
		e.answers = k.call(ctx, w, in)
		e.returned = true
	}()
	return done
}

// one sends a message to a wrapped handler and returns how its call ended.
func (k *kind) one(t *testing.T, l throttle.Limiter, h *handler, o options) ending {
	t.Helper()
	return <-k.start(t.Context(), k.wrap(k.bare(h), l, o), "a")
}

// failed returns the error that a call panicked with.
func (e ending) failed(t *testing.T) error {
	t.Helper()
	err, ok := e.panicked.(error)
	require.True(t, ok, "ended with %+v", e)
	return err
}
