package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
)

// call makes one call of 8 tokens at most.
func (p *provider) call() {
	body := strings.NewReader(`{"max_tokens":7,"messages":[{"content":"hi"}]}`)
	p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/chat/completions", body))
}

// Every promise that is broken makes the demo fail.
func TestVerdictFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*demo)
		ok    bool
	}{
		{"all is well", func(*demo) {}, true},
		{"an answer is missing", func(d *demo) { d.answers.Add(-1) }, false},
		{"an error result", func(d *demo) { d.errorResults.Add(1) }, false},
		{"a message without a result", func(d *demo) { d.failed.Add(1) }, false},
		{"a call too many", func(d *demo) { d.prompts--; d.answers.Add(-1) }, false},
		{"a call refused", func(d *demo) { d.provider.call(); d.prompts++; d.answers.Add(1); d.provider.call() }, false},
		{"the limit not used", func(d *demo) {
			time.Sleep(10 * time.Second)
			d.provider.call()
			d.prompts++
			d.answers.Add(1)
		}, false},
		{"too many calls at once", func(d *demo) {
			time.Sleep(1500 * time.Millisecond)
			var calls sync.WaitGroup
			calls.Go(d.provider.call)
			calls.Go(d.provider.call)
			calls.Wait()
			d.prompts += 2
			d.answers.Add(2)
			d.inFlight = 1
		}, false},
		{"a process that did not end well", func(d *demo) { d.ended = errors.New("killed") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limits := fakellm.Config{Provider: fakellm.Azure, RequestsPerMinute: 60, Slice: 2 * time.Second, Latency: time.Millisecond}
				server, err := fakellm.New(limits)
				require.NoError(t, err)
				d := &demo{
					options: options{prompts: 101, provides: limits, inFlight: 4}, out: t.Output(),
					provider: &provider{Server: server}, began: time.Now(),
				}
				for range d.prompts {
					d.provider.call()
					d.answers.Add(1)
					time.Sleep(time.Second - limits.Latency)
				}
				d.provider.call() // the slice is two seconds: one was saved up
				d.prompts++
				d.answers.Add(1)
				c.spoil(d)
				require.Equal(t, c.ok, d.verdict())
			})
		})
	}
}

func TestFlags(t *testing.T) {
	o, err := parse([]string{"-binary", "x"}, t.Output())
	require.NoError(t, err)
	require.Equal(t, 2000, o.prompts)
	for _, args := range [][]string{
		{},
		{"-binary", "x", "-processes", "0"},
		{"-binary", "x", "-prompts", "0"},
		{"-binary", "x", "-requests-per-minute", "0", "-tokens-per-minute", "0"},
		{"-unknown"},
	} {
		_, err := parse(args, t.Output())
		require.Error(t, err, args)
	}
}
