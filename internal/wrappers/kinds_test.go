package wrappers

import (
	"context"
	"slices"
	"strings"
	"time"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"
	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/internal/proxy/handlerproxy"
	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A kind of handler, or a way to wrap it.
type kind struct {
	name string
	// bare returns a pointer to a handler of this kind only, wrap its wrapper, and check the fault of the options.
	bare  func(h *handler) any
	wrap  func(bare any, l throttle.Limiter, o options) any
	check func(o options) error
	// careless wraps it so that it answers when a wait ends, which no wrapper may.
	careless func(bare any, l throttle.Limiter, o options) any
	// call sends messages to a wrapper, one after the other, and returns an answer for each.
	call func(ctx context.Context, w any, in <-chan message) []answer
	// dial connects to a server, and proxied is the proxy's name of the kind.
	dial    dialer
	proxied handlerproxy.Kind

	batches bool // it takes batches
	sink    bool // it answers a failure where the others end the call
	lanes   bool // its messages wait in lanes of their tags
	outputs bool // its outputs draw
	source  bool // it reads
}

// kinds returns all kinds that keep a promise.
func kinds(keep func(k *kind) bool) (all []*kind) {
	for _, k := range []*kind{
		mapKind(), batchKind(), streamKind("stream map"), streamKind("stream map, direct", mapper.Direct()), outputKind(),
		transformKind(), sourceKind(), sinkKind("sink"), lanesKind(), sinkKind(inOrder, sinker.WithTag(sinker.TagFromKey(1)), sinker.InOrder()),
	} {
		if keep(k) {
			all = append(all, k)
		}
	}
	return all
}

// tags reports whether the kind itself sets tags.
func (k *kind) tags() bool { return k.lanes || k.name == inOrder }

const inOrder = "sink, in order"

// as is for handlers of a known kind.
func as[H any](handler any) H {
	return handler.(H) //nolint:errcheck,forcetypeassert // a kind has handlers of one type
}

func mapOptions(o options) []mapper.Option {
	action := map[string]mapper.Action{"nack": mapper.Nack(), "drop": mapper.Drop(), "no func": mapper.DenyFunc(nil)}[o.onDenied]
	if tags, ok := strings.CutPrefix(o.onDenied, "forward "); ok {
		action = mapper.Forward(strings.Split(tags, ",")...)
	}
	if o.onDenied == "func" {
		action = mapper.DenyFunc(func(_ context.Context, keys []string, d mapsdk.Datum, why *throttle.Error) mapsdk.Messages {
			o.deny(message(d.Value()), why)
			return mapsdk.Messages{mapsdk.NewMessage([]byte("denied")).WithKeys(keys)}
		})
	}
	opts := []mapper.Option{mapper.WithMaxWait(o.maxWait), mapper.OnDenied(action), mapper.WithLogger(o.log), nil}
	if o.cost != nil {
		opts = append(opts, mapper.WithCost(func(_ []string, d mapsdk.Datum) int { return o.cost(message(d.Value())) }))
	}
	if o.tag != nil {
		opts = append(opts, mapper.WithTag(func(_ []string, d mapsdk.Datum) string { return o.tag(message(d.Value())) }))
	}
	named := map[string]mapper.Option{
		"header cost": mapper.WithCost(mapper.CostFromHeader("cost")), "bytes/2": mapper.WithCost(mapper.CostBytes(2)),
		"header tag": mapper.WithTag(mapper.TagFromHeader("tag")), "key 1": mapper.WithTag(mapper.TagFromKey(1)),
	}
	opts = append(opts, named[o.costs], named[o.tags])
	if o.exempt {
		opts = append(opts, mapper.ExemptDropped())
	}
	return opts
}

// sent is what the first four kinds return.
type sent interface {
	Value() []byte
	Keys() []string
	Tags() []string
	NackOptions() *mapsdk.NackOptions
}

func answerOf[M sent](outputs []M) (a answer) {
	texts := make([]string, len(outputs))
	for i, m := range outputs {
		texts[i] = textOf(string(m.Value()), m.Keys(), m.Tags())
		if o := m.NackOptions(); o != nil {
			a.delay, a.reason = time.Duration(*o.Delay)*time.Millisecond, *o.Reason
		}
	}
	a.text = strings.Join(texts, " ")
	return a
}

func mapKind() *kind {
	return &kind{
		name: "map", proxied: handlerproxy.Map, dial: dialMap,
		bare:  func(h *handler) any { return &struct{ mapsdk.Mapper }{h} },
		check: func(o options) error { return mapper.Check(mapOptions(o)...) },
		wrap: func(bare any, l throttle.Limiter, o options) any {
			return mapper.Wrap(as[mapsdk.Mapper](bare), l, mapOptions(o)...)
		},
		careless: func(bare any, l throttle.Limiter, _ options) any {
			return mapsdk.MapperFunc(func(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
				if _, err := as[throttle.Tagger](l).ForTag(keys[1]).Acquire(ctx, 1); err != nil {
					return mapsdk.MessagesBuilder()
				}
				return as[mapsdk.Mapper](bare).Map(ctx, keys, d)
			})
		},
		call: func(ctx context.Context, w any, in <-chan message) (all []answer) {
			for m := range in {
				d := mapsdk.NewHandlerDatum([]byte(m), eventTime, watermark, m.headers(), newMetadata(), nil)
				all = append(all, answerOf(as[mapsdk.Mapper](w).Map(ctx, m.keys(), d).Items()))
			}
			return all
		},
	}
}

func transformKind() *kind {
	opts := func(o options) []sourcer.TransformerOption {
		action := map[string]sourcer.Action{"nack": sourcer.Nack(), "drop": sourcer.Drop(), "no func": sourcer.DenyFunc(nil)}[o.onDenied]
		if tags, ok := strings.CutPrefix(o.onDenied, "forward "); ok {
			action = sourcer.Forward(strings.Split(tags, ",")...)
		}
		if o.onDenied == "func" {
			action = sourcer.DenyFunc(func(_ context.Context, keys []string, d transformsdk.Datum, why *throttle.Error) transformsdk.Messages {
				o.deny(message(d.Value()), why)
				return transformsdk.Messages{transformsdk.NewMessage([]byte("denied"), d.EventTime()).WithKeys(keys)}
			})
		}
		opts := []sourcer.TransformerOption{sourcer.WithMaxWait(o.maxWait), sourcer.OnDenied(action), sourcer.WithLogger(o.log), nil}
		if o.cost != nil {
			opts = append(opts, sourcer.WithCost(func(_ []string, d transformsdk.Datum) int { return o.cost(message(d.Value())) }))
		}
		if o.tag != nil {
			opts = append(opts, sourcer.WithTag(func(_ []string, d transformsdk.Datum) string { return o.tag(message(d.Value())) }))
		}
		named := map[string]sourcer.TransformerOption{
			"header cost": sourcer.WithCost(sourcer.CostFromHeader("cost")), "bytes/2": sourcer.WithCost(sourcer.CostBytes(2)),
			"header tag": sourcer.WithTag(sourcer.TagFromHeader("tag")), "key 1": sourcer.WithTag(sourcer.TagFromKey(1)),
		}
		opts = append(opts, named[o.costs], named[o.tags])
		if o.exempt {
			opts = append(opts, sourcer.ExemptDropped())
		}
		return opts
	}
	return &kind{
		name: "transformer", proxied: handlerproxy.Transform, dial: dialTransform,
		bare:  func(h *handler) any { return &struct{ transformsdk.SourceTransformer }{h} },
		check: func(o options) error { return sourcer.CheckTransformer(opts(o)...) },
		wrap: func(bare any, l throttle.Limiter, o options) any {
			return sourcer.WrapTransformer(as[transformsdk.SourceTransformer](bare), l, opts(o)...)
		},
		careless: func(bare any, l throttle.Limiter, _ options) any {
			return transformsdk.SourceTransformFunc(func(ctx context.Context, keys []string, d transformsdk.Datum) transformsdk.Messages {
				if _, err := as[throttle.Tagger](l).ForTag(keys[1]).Acquire(ctx, 1); err != nil {
					return transformsdk.MessagesBuilder().Append(transformsdk.MessageToDrop(d.EventTime()))
				}
				return as[transformsdk.SourceTransformer](bare).Transform(ctx, keys, d)
			})
		},
		call: func(ctx context.Context, w any, in <-chan message) (all []answer) {
			for m := range in {
				d := transformsdk.NewHandlerDatum([]byte(m), eventTime, watermark, m.headers(), newMetadata(), nil)
				out := as[transformsdk.SourceTransformer](w).Transform(ctx, m.keys(), d).Items()
				a := answerOf(out)
				for _, m := range out {
					if !m.EventTime().Equal(eventTime) {
						a.text += " with another event time" // the watermark goes by it
					}
				}
				all = append(all, a)
			}
			return all
		},
	}
}

func batchKind() *kind {
	return &kind{
		name: "batch map", batches: true, proxied: handlerproxy.BatchMap, dial: dialBatchMap,
		bare:  func(h *handler) any { return &struct{ batchmapsdk.BatchMapper }{h} },
		check: func(o options) error { return mapper.Check(mapOptions(o)...) },
		wrap: func(bare any, l throttle.Limiter, o options) any {
			return mapper.WrapBatch(as[batchmapsdk.BatchMapper](bare), l, mapOptions(o)...)
		},
		call: func(ctx context.Context, w any, in <-chan message) (all []answer) {
			data, ids := make(chan batchmapsdk.Datum), []string(nil)
			go func() {
				defer close(data)
				for m := range in {
					ids = append(ids, string(m))
					data <- batchmapsdk.NewHandlerDatum([]byte(m), eventTime, watermark, m.headers(), string(m), m.keys())
				}
			}()
			for i, r := range as[batchmapsdk.BatchMapper](w).BatchMap(ctx, data).Items() {
				a := answerOf(r.Items())
				if r.Id() != ids[i] {
					a.text = "out of order: " + r.Id()
				}
				all = append(all, a)
			}
			return all
		},
	}
}

func streamKind(name string, more ...mapper.StreamOption) *kind {
	all := func(o options) []mapper.StreamOption {
		opts := slices.Clip(more)
		for _, opt := range mapOptions(o) {
			opts = append(opts, opt)
		}
		return opts
	}
	return &kind{
		name: name, proxied: handlerproxy.MapStream, dial: dialMapStream,
		bare:  func(h *handler) any { return &struct{ mapstreamsdk.MapStreamer }{h} },
		check: func(o options) error { return mapper.CheckStream(all(o)...) },
		wrap: func(bare any, l throttle.Limiter, o options) any {
			return mapper.WrapStream(as[mapstreamsdk.MapStreamer](bare), l, all(o)...)
		},
		call: func(ctx context.Context, w any, in <-chan message) (all []answer) {
			for m := range in {
				to := make(chan mapstreamsdk.Message, 10)
				as[mapstreamsdk.MapStreamer](w).MapStream(ctx, m.keys(), mapstreamsdk.NewHandlerDatum([]byte(m), eventTime, watermark, m.headers()), to)
				var out []mapstreamsdk.Message
				for m := range to {
					out = append(out, m)
				}
				all = append(all, answerOf(out))
			}
			return all
		},
	}
}

func outputKind() *kind {
	k := streamKind("stream map, per output", mapper.PerOutput())
	k.outputs = true
	return k
}

func lanesKind() *kind {
	k := sinkKind("sink, tags", sinker.WithTag(sinker.TagFromKey(1)))
	k.lanes = true
	return k
}

// sinkDatum is a message as a sink sees it.
type sinkDatum struct{ m message }

func (d *sinkDatum) ID() string                            { return string(d.m) }
func (d *sinkDatum) Value() []byte                         { return []byte(d.m) }
func (d *sinkDatum) Keys() []string                        { return d.m.keys() }
func (d *sinkDatum) Headers() map[string]string            { return d.m.headers() }
func (*sinkDatum) EventTime() time.Time                    { return eventTime }
func (*sinkDatum) Watermark() time.Time                    { return watermark }
func (*sinkDatum) UserMetadata() *sinksdk.UserMetadata     { return newMetadata() }
func (*sinkDatum) SystemMetadata() *sinksdk.SystemMetadata { return nil }

func sinkOptions(o options) []sinker.Option {
	action := map[string]sinker.Action{
		"nack": sinker.Nack(), "drop": sinker.Drop(), "fail": sinker.Fail(), "fallback": sinker.Fallback(), "no func": sinker.DenyFunc(nil),
	}[o.onDenied]
	if o.onDenied == "func" {
		action = sinker.DenyFunc(func(d sinksdk.Datum, why *throttle.Error) sinksdk.Response {
			o.deny(message(d.Value()), why)
			return sinksdk.ResponseServe("another ID", []byte("denied/"+strings.Join(d.Keys(), ",")))
		})
	}
	opts := []sinker.Option{sinker.WithMaxWait(o.maxWait), sinker.WithBatchBudget(o.budget), sinker.OnDenied(action), sinker.WithLogger(o.log), nil}
	if o.cost != nil {
		opts = append(opts, sinker.WithCost(func(d sinksdk.Datum) int { return o.cost(message(d.Value())) }))
	}
	if o.tag != nil {
		opts = append(opts, sinker.WithTag(func(d sinksdk.Datum) string { return o.tag(message(d.Value())) }))
	}
	named := map[string]sinker.Option{
		"header cost": sinker.WithCost(sinker.CostFromHeader("cost")), "bytes/2": sinker.WithCost(sinker.CostBytes(2)),
		"header tag": sinker.WithTag(sinker.TagFromHeader("tag")), "key 1": sinker.WithTag(sinker.TagFromKey(1)),
	}
	opts = append(opts, named[o.costs], named[o.tags])
	return opts
}

func sinkKind(name string, more ...sinker.Option) *kind {
	opts := func(o options) []sinker.Option { return append(slices.Clip(more), sinkOptions(o)...) }
	return &kind{
		name: name, batches: true, sink: true, proxied: handlerproxy.Sink, dial: dialSink,
		bare:  func(h *handler) any { return &struct{ sinksdk.Sinker }{h} },
		check: func(o options) error { return sinker.Check(opts(o)...) },
		wrap: func(bare any, l throttle.Limiter, o options) any {
			return sinker.Wrap(as[sinksdk.Sinker](bare), l, opts(o)...)
		},
		call: func(ctx context.Context, w any, in <-chan message) []answer {
			data, ids := make(chan sinksdk.Datum), []string(nil)
			go func() {
				defer close(data)
				for m := range in {
					ids = append(ids, string(m))
					data <- &sinkDatum{m}
				}
			}()
			responses := as[sinksdk.Sinker](w).Sink(ctx, data)
			all := make([]answer, max(len(ids), len(responses)))
			for i, r := range responses {
				at := slices.Index(ids, r.ID)
				if at < 0 || all[at].text != "" {
					at = i
					all[at].text = "one too many: "
				}
				all[at] = sunk(all[at].text, r)
			}
			return all
		},
	}
}

// sunk describes a sink's response.
func sunk(text string, r sinksdk.Response) (a answer) {
	switch {
	case r.Success:
		text += "handled"
	case r.Fallback:
		text += "fallback"
	case r.Serve:
		text += string(r.ServeResponse)
	case r.Nack:
		text += "#nack"
		a.delay, a.reason = time.Duration(*r.NackOptions.Delay)*time.Millisecond, *r.NackOptions.Reason
	default:
		text += r.Err
	}
	a.text = text
	return a
}

// readFor is the time that a Read of these tests has.
const readFor = 10_000 * time.Hour

type oneRead struct{}

func (oneRead) Count() uint64          { return 1 }
func (oneRead) TimeOut() time.Duration { return readFor }

// sourceKind is a source that is asked for a message where others are sent one.
func sourceKind() *kind {
	return &kind{
		name: "source", source: true,
		bare: func(h *handler) any { return &spring{handler: h} },
		wrap: func(bare any, l throttle.Limiter, o options) any {
			opts := []sourcer.Option{sourcer.WithLogger(o.log), nil}
			if o.cost != nil {
				opts = append(opts, sourcer.WithReadCost(func(sourcesdk.Message) int { return o.cost("a") }))
			}
			return sourcer.Wrap(as[sourcesdk.Sourcer](bare), l, opts...)
		},
		call: func(ctx context.Context, w any, in <-chan message) (all []answer) {
			for range in {
				out := make(chan sourcesdk.Message, 1)
				as[sourcesdk.Sourcer](w).Read(ctx, oneRead{}, out)
				close(out)
				m, ok := <-out
				if ok {
					all = append(all, answer{text: string(m.Value())})
				}
			}
			return all
		},
	}
}
