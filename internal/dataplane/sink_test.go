package dataplane

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
)

func dialSink(t *testing.T, socket string, opts ...Option) *Sink {
	t.Helper()
	return dialled[*Sink](t)(DialSink(testContext(t), socket, opts...))
}

// obedient is a sink that answers as the first word of the value says, and notes
// what it has got as "id value". "flaky" fails twice and then succeeds.
type obedient struct {
	takesAll bool // but for "nack"

	mu    sync.Mutex
	got   []string
	tries map[string]int
}

func (o *obedient) Sink(_ context.Context, in <-chan sinksdk.Datum) sinksdk.Responses {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tries == nil {
		o.tries = map[string]int{}
	}
	out := sinksdk.ResponsesBuilder()
	for d := range in {
		o.got = append(o.got, d.ID()+" "+string(d.Value()))
		o.tries[d.ID()]++
		out = out.Append(o.respond(d))
	}
	return out
}

func (o *obedient) respond(d sinksdk.Datum) sinksdk.Response {
	delay := uint64(300)
	word, _, _ := strings.Cut(string(d.Value()), " ")
	if o.takesAll && word != "nack" {
		return sinksdk.ResponseOK(d.ID())
	}
	switch word {
	case "fail":
		return sinksdk.ResponseFailure(d.ID(), "no luck")
	case "flaky":
		if o.tries[d.ID()] <= 2 {
			return sinksdk.ResponseFailure(d.ID(), "not yet")
		}
	case "fallback":
		return sinksdk.ResponseFallback(d.ID())
	case "serve":
		return sinksdk.ResponseServe(d.ID(), []byte("served"))
	case "success":
		return sinksdk.ResponseOnSuccess(d.ID(), sinksdk.NewMessage([]byte("nack later")).WithKeys([]string{"new"}))
	case "nack":
		return sinksdk.ResponseNack(d.ID(), &sinksdk.NackOptions{Delay: &delay})
	}
	return sinksdk.ResponseOK(d.ID())
}

func TestSinkWriterTriesAgainAndRoutes(t *testing.T) {
	main, fallback, onSuccess := &obedient{}, &obedient{takesAll: true}, &obedient{}
	w := &SinkWriter{
		Main:      dialSink(t, Serve(t, main).Socket),
		Fallback:  dialSink(t, Serve(t, fallback).Socket),
		OnSuccess: dialSink(t, Serve(t, onSuccess).Socket),
	}
	got, err := w.Write(testContext(t), messages("ok", "flaky", "fallback", "success", "nack", "flaky two"))
	require.NoError(t, err)
	later := &NackOptions{Delay: 300 * time.Millisecond}
	require.Len(t, got, 6)
	require.Equal(t, Written{ID: "1-0", Main: SinkResult{ID: "1-0", Status: SinkSuccess}}, got[0])
	require.Equal(t, Written{ID: "1-1", Main: SinkResult{ID: "1-1", Status: SinkSuccess}, Retries: 2}, got[1])
	require.Equal(t, SinkFallback, got[2].Main.Status)
	require.Equal(t, []string{"1-2 fallback"}, fallback.got)
	require.Equal(t, SinkSuccess, got[2].Routed.Status)
	require.False(t, got[2].Nack)
	require.Equal(t, []string{"1-3 nack later"}, onSuccess.got)
	require.True(t, got[3].Nack, "the on-success sink refused it")
	require.Equal(t, later, got[3].NackOptions)
	require.Equal(t, SinkOnSuccess, got[3].Main.Status)
	require.Equal(t, SinkNack, got[3].Routed.Status)
	require.True(t, got[4].Nack)
	require.Equal(t, later, got[4].NackOptions)
	require.Equal(t, 2, got[5].Retries)
	require.Equal(t, []string{
		"1-0 ok", "1-1 flaky", "1-2 fallback", "1-3 success", "1-4 nack", "1-5 flaky two",
		"1-1 flaky", "1-5 flaky two", "1-1 flaky", "1-5 flaky two",
	}, main.got, "only failures, under their IDs")
	require.Equal(t, Stats{Sent: 10, Answered: 10}, w.Main.Stats())
}

func TestSinkWriterFailsWhatCannotGoOn(t *testing.T) {
	ctx := testContext(t)
	main := dialSink(t, Serve(t, &obedient{}).Socket)
	fallback := dialSink(t, Serve(t, &obedient{takesAll: true}).Socket)
	same := dialSink(t, Serve(t, &obedient{}).Socket)
	for name, c := range map[string]struct {
		w     *SinkWriter
		value string
		text  string
	}{
		"no fallback sink":    {&SinkWriter{Main: main}, "fallback", "no fallback sink"},
		"no on-success sink":  {&SinkWriter{Main: main}, "success", "no on-success sink"},
		"no serving store":    {&SinkWriter{Main: main}, "serve", "no serving store"},
		"tries exhausted":     {&SinkWriter{Main: main, Retries: 3}, "fail", "every one of 4 tries"},
		"fallback falls back": {&SinkWriter{Main: main, Fallback: same}, "fallback", "not allowed there"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.w.Write(ctx, messages("ok", c.value))
			require.ErrorContains(t, err, c.text)
			require.Nil(t, got)
		})
	}
	got, err := (&SinkWriter{Main: main, Fallback: fallback}).Write(ctx, messages("fallback", "ok"))
	require.NoError(t, err)
	require.Equal(t, SinkSuccess, got[0].Routed.Status)
	require.False(t, got[0].Nack)
	require.Empty(t, got[1].Routed)

	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = (&SinkWriter{Main: main}).Write(short, messages("fail"))
	require.ErrorIs(t, err, context.DeadlineExceeded, "tries end with the context")
}
