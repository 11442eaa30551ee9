package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/world/calls"
)

// TestScenarios plays the scenarios in testdata: messages that a sink sends to a service that follows a script. Package calls has their
// language, with these commands:
//
//	sink [VARIABLE=V]: a sink with these variables, without HTTP_SINK_
//	send [as=P] [within=D] [+D] MESSAGE..: a batch of messages in the background with as=P, else until its end. +D is a time between two messages,
//	  N*MESSAGE is one that comes so often. Results are ok, failed, fallback, onsuccess, and nack= with the delay.
//	why: what the responses to the last batch say
//
// Its limits over all requests are rate1 and rate2.
func TestScenarios(t *testing.T) {
	calls.Play(t, "testdata/*.txt", func() calls.Commands {
		p := &played{}
		return calls.Commands{
			"sink": p.open, "send": p.send, "why": func(*calls.Order) string { return cmp.Or(strings.Join(p.why, " "), "none") },
		}
	})
}

// A played sink is that of a scenario.
type played struct {
	*sink

	why []string // of the last batch
}

func (p *played) open(o *calls.Order) string {
	vars := env{"URL": "http://service.test/", "NUMATHROTTLE_STORE": "static://?replicas=1"}
	for name, value := range o.Set {
		vars[name] = o.Unquoted(value)
	}
	clear(o.Set)
	if vars["NUMATHROTTLE_QUOTAS"] != "" { // a static pool has none
		vars["NUMATHROTTLE_STORE"], vars["NUMATHROTTLE_POOL"], vars["NUMATHROTTLE_ID"] = "memory://"+rand.Text(), "p", "a"
	}
	s, err := loaded(o.T, vars)
	require.NoError(o.T, err, o.Line)
	s.base = o.Service()
	k, err := newSink(o.T.Context(), &s, o.Logger())
	require.NoError(o.T, err, o.Line)
	o.T.Cleanup(func() { require.NoError(o.T, k.close()) })
	p.sink = k
	for i, l := range k.limits.rates {
		o.Know(fmt.Sprint("rate", i+1), l)
	}
	return ""
}

func (p *played) send(o *calls.Order) string {
	words := o.Rest()
	return o.Work(func(ctx context.Context) string {
		in := make(chan sinksdk.Datum)
		go func() {
			defer close(in)
			n := 0
			for _, w := range words {
				if after, ok := strings.CutPrefix(w, "+"); ok {
					time.Sleep(o.Time(after))
					continue
				}
				times, value, ok := strings.Cut(w, "*")
				if !ok {
					times, value = "1", w
				}
				for range int(o.Number(times)) {
					n++
					in <- datum{id: fmt.Sprint("m-", n), value: o.Unquoted(value)}
				}
			}
		}()
		var results []string
		p.why = nil
		for i, r := range p.handler.Sink(ctx, in) {
			require.Equal(o.T, fmt.Sprint("m-", i+1), r.ID, o.Line)
			results = append(results, p.resultOf(r))
		}
		return strings.Join(results, " ")
	})
}

// resultOf returns a response as a word.
func (p *played) resultOf(r sinksdk.Response) string {
	switch {
	case r.Nack:
		p.why = append(p.why, *r.NackOptions.Reason)
		return fmt.Sprint("nack=", time.Duration(*r.NackOptions.Delay)*time.Millisecond)
	case r.Fallback:
		return "fallback"
	case r.OnSuccess:
		p.why = append(p.why, string(r.OnSuccessMessage.Value()))
		return "onsuccess"
	case r.Success:
		return "ok"
	}
	p.why = append(p.why, r.Err)
	return "failed"
}
