package handlerproxy_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/handlerproxy"
	"github.com/numaproj-contrib/numathrottle/internal/quotatest"
)

// A verdict is what became of a message: the reason of its nack, empty when the handler has seen it.
type verdict struct{ nacked string }

func verdictOf(results []dataplane.Result) verdict {
	if len(results) > 0 && results[0].Nack {
		return verdict{results[0].NackOptions.Reason}
	}
	return verdict{}
}

// each sends messages one by one at once.
func each(ctx context.Context, do func(context.Context, dataplane.Message) ([]dataplane.Result, error), in []dataplane.Message) ([]verdict, error) {
	out, errs := make([]verdict, len(in)), make(chan error, len(in))
	for i := range in {
		go func() {
			results, err := do(ctx, in[i])
			out[i] = verdictOf(results)
			errs <- err
		}()
	}
	for range in {
		if err := <-errs; err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Behind the proxy each kind of handler goes by the quotas of tags, wherever the tag stands, and every message has one answer.
func TestQuotasOfEachKind(t *testing.T) {
	type sender = func(ctx context.Context, t *testing.T, socket string, in []dataplane.Message) ([]verdict, error)
	for _, c := range []struct {
		kind    handlerproxy.Kind
		tag     string
		handler any
		send    sender
	}{
		{handlerproxy.Map, "header tenant", echoMap, func(ctx context.Context, t *testing.T, socket string, in []dataplane.Message) ([]verdict, error) {
			m, err := dataplane.Dial(ctx, socket)
			require.NoError(t, err)
			defer func() { require.NoError(t, m.Close()) }()
			return each(ctx, m.Do, in)
		}},
		{
			handlerproxy.MapStream, "json user.tenant", echoStream,
			func(ctx context.Context, t *testing.T, socket string, in []dataplane.Message) ([]verdict, error) {
				m, err := dataplane.DialMapStream(ctx, socket)
				require.NoError(t, err)
				defer func() { require.NoError(t, m.Close()) }()
				return each(ctx, m.Do, in)
			},
		},
		{handlerproxy.Transform, "key 1", echoTransform, func(ctx context.Context, t *testing.T, socket string, in []dataplane.Message) ([]verdict, error) {
			m, err := dataplane.DialTransform(ctx, socket)
			require.NoError(t, err)
			defer func() { require.NoError(t, m.Close()) }()
			return each(ctx, m.Do, in)
		}},
		{handlerproxy.BatchMap, "key 1", echoBatch, func(ctx context.Context, t *testing.T, socket string, in []dataplane.Message) ([]verdict, error) {
			m, err := dataplane.DialBatchMap(ctx, socket)
			require.NoError(t, err)
			defer func() { require.NoError(t, m.Close()) }()
			results, err := m.Do(ctx, in)
			out := make([]verdict, len(results))
			for i := range results {
				out[i] = verdictOf(results[i])
			}
			return out, err
		}},
		{handlerproxy.Sink, "header tenant", storeAll, func(ctx context.Context, t *testing.T, socket string, in []dataplane.Message) ([]verdict, error) {
			k, err := dataplane.DialSink(ctx, socket)
			require.NoError(t, err)
			defer func() { require.NoError(t, k.Close()) }()
			results, err := k.Do(ctx, in)
			out := make([]verdict, len(results))
			for i, r := range results {
				if r.Status == dataplane.SinkNack {
					out[i] = verdict{r.NackOptions.Reason}
				}
			}
			return out, err
		}},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			th := quotatest.New(t)
			conf := configured(t, c.kind, th)
			conf.Tag, conf.OnDenied, conf.MaxWait = c.tag, "nack", time.Second
			s := serve(t, conf, c.handler)
			var in []dataplane.Message
			var tags []string
			for range 4 {
				for _, tag := range []string{quotatest.Total, quotatest.Budget, quotatest.Paused, quotatest.Free} {
					in = append(in, dataplane.Message{
						Keys: []string{"k", tag}, Headers: map[string]string{"tenant": tag}, EventTime: time.Unix(100, 0),
						Value: fmt.Appendf(nil, `{"user":{"tenant":%q}}`, tag),
					})
					tags = append(tags, tag)
				}
			}
			got, err := c.send(within(t), t, s.waitSocket(t), in)
			require.NoError(t, err)
			require.Len(t, got, len(in))
			handled := map[string]int{}
			for i, v := range got {
				if v.nacked == "" {
					handled[tags[i]]++
					continue
				}
				require.Contains(t, v.nacked, string(quotatest.Reason(tags[i])))
				require.Contains(t, v.nacked, fmt.Sprintf("tag %q", tags[i]))
			}
			require.Equal(t, map[string]int{quotatest.Free: 4, quotatest.Budget: quotatest.Amount}, handled)
			require.Equal(t, map[string]int64{quotatest.Free: 4, quotatest.Budget: quotatest.Amount}, quotatest.Used(th))
		})
	}
}
