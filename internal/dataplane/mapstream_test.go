package dataplane

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
)

func dialStreamed(t *testing.T, socket string, opts ...Option) *MapStream {
	t.Helper()
	return dialled[*MapStream](t)(DialMapStream(testContext(t), socket, opts...))
}

// spell answers with one result for each byte of the value.
func spell(_ context.Context, keys []string, d mapstreamsdk.Datum, out chan<- mapstreamsdk.Message) {
	defer close(out)
	for _, b := range d.Value() {
		out <- mapstreamsdk.NewMessage([]byte{b}).WithKeys(keys)
	}
}

func TestMapStreamGathersTheResultsOfEachMessage(t *testing.T) {
	m := dialStreamed(t, sdkserver.Start(t, mapstreamsdk.MapStreamerFunc(spell)).Socket, WithConcurrency(8))
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			value := fmt.Sprintf("message %d", i)
			got, err := m.Do(testContext(t), Message{Value: []byte(value)})
			if err != nil {
				t.Errorf("%s: %v", value, err)
			}
			var all []byte
			for _, r := range got {
				all = append(all, r.Value...)
			}
			if string(all) != value {
				t.Errorf("%s: got %q", value, all)
			}
		})
	}
	wg.Wait()
	got, err := m.Do(testContext(t), Message{})
	require.NoError(t, err)
	require.Nil(t, got, "no results and an end")
	require.NoError(t, m.Close())
	require.Equal(t, Stats{Sent: 201, Answered: 201}, m.Stats())
}

func TestMapStreamTellsOfEachResultAsItComes(t *testing.T) {
	next := make(chan struct{})
	m := dialStreamed(t, sdkserver.Start(t, mapstreamsdk.MapStreamerFunc(
		func(_ context.Context, _ []string, d mapstreamsdk.Datum, out chan<- mapstreamsdk.Message) {
			defer close(out)
			for _, b := range d.Value() {
				<-next
				out <- mapstreamsdk.NewMessage([]byte{b})
			}
		})).Socket)
	told, all := make(chan string, 3), make(chan []Result, 1)
	go func() {
		got, err := m.DoEach(testContext(t), Message{Value: []byte("abc")}, func(r Result) { told <- string(r.Value) })
		if err != nil {
			t.Errorf("DoEach: %v", err)
		}
		all <- got
	}()
	for _, want := range []string{"a", "b", "c"} {
		next <- struct{}{}
		require.Equal(t, want, <-told)
	}
	require.Len(t, <-all, 3)
}

func TestMapStreamCallerMayLeaveAmongTheResults(t *testing.T) {
	gate := make(chan struct{})
	m := dialStreamed(t, sdkserver.Start(t, mapstreamsdk.MapStreamerFunc(
		func(ctx context.Context, keys []string, d mapstreamsdk.Datum, out chan<- mapstreamsdk.Message) {
			if string(d.Value()) == "wait" {
				out <- mapstreamsdk.NewMessage([]byte("first"))
				<-gate
			}
			spell(ctx, keys, d, out)
		})).Socket, WithConcurrency(1))
	ctx, cancel := context.WithCancel(testContext(t))
	_, err := m.DoEach(ctx, Message{Value: []byte("wait")}, func(Result) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"0-1"}, m.Outstanding())
	close(gate)
	got, err := m.Do(testContext(t), Message{Value: []byte("n")})
	require.NoError(t, err)
	require.Equal(t, []Result{{Value: []byte("n")}}, got, "nothing of the message before")
	require.Equal(t, Stats{Sent: 2, Answered: 2, Late: 1}, m.Stats())
	require.NoError(t, m.Close())
}

func TestMapStreamFaultsBreakTheStreamAndNameTheID(t *testing.T) {
	both := reply("0-1")
	both.Status = eotOf("").GetStatus()
	for name, c := range map[string]struct {
		send  []*mappb.MapResponse
		ends  bool
		fault Fault
		ids   []string
	}{
		"result after the end":     {send: []*mappb.MapResponse{reply("0-1"), eotOf("0-1"), reply("0-1")}, fault: FaultAfterEOT, ids: []string{"0-1"}},
		"second end":               {send: []*mappb.MapResponse{eotOf("0-1"), eotOf("0-1")}, fault: FaultDuplicateID, ids: []string{"0-1"}},
		"unknown":                  {send: []*mappb.MapResponse{reply("0-2")}, fault: FaultUnknownID, ids: []string{"0-2"}},
		"unknown: end":             {send: []*mappb.MapResponse{eotOf("")}, fault: FaultUnknownID, ids: []string{""}},
		"end without the mark":     {send: []*mappb.MapResponse{reply("0-1")}, ends: true, fault: FaultMissingEOT, ids: []string{"0-1"}},
		"end without anything":     {ends: true, fault: FaultMissingEOT, ids: []string{"0-1"}},
		"results in the mark":      {send: []*mappb.MapResponse{both}, fault: FaultStatus, ids: []string{"0-1"}},
		"second handshake instead": {send: []*mappb.MapResponse{{Handshake: &mappb.Handshake{Sot: true}}}, fault: FaultHandshake},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeMap{}
			f.answer = func(_ *mappb.MapRequest, send func(*mappb.MapResponse)) bool {
				for _, r := range c.send {
					send(r)
				}
				return !c.ends
			}
			m := dialStreamed(t, startScripted(t, f), WithConcurrency(4))
			_, _ = m.Do(testContext(t), Message{}) // what comes after the end spoils only what follows
			awaitBroken(t, m.Broken())
			_, err := m.Do(testContext(t), Message{})
			requireFault(t, err, c.fault, c.ids...)
			s := m.Stats()
			require.Equal(t, s.Sent, s.Answered+s.Failed)
		})
	}
}

func TestMapStreamCloseWaitsForTheEnd(t *testing.T) {
	gate := make(chan struct{})
	m := dialStreamed(t, sdkserver.Start(t, mapstreamsdk.MapStreamerFunc(
		func(ctx context.Context, keys []string, d mapstreamsdk.Datum, out chan<- mapstreamsdk.Message) {
			out <- mapstreamsdk.NewMessage([]byte("first"))
			<-gate
			spell(ctx, keys, d, out)
		})).Socket)
	got := make(chan []Result, 1)
	go func() {
		r, _ := m.Do(testContext(t), Message{Value: []byte("x")})
		got <- r
	}()
	eventually(t, func() bool { return m.Stats().Sent == 1 }, "in flight")
	time.AfterFunc(20*time.Millisecond, func() { close(gate) })
	require.NoError(t, m.Close())
	require.Len(t, <-got, 2)
}
