package dataplane

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
)

// byID makes a fake that answers each request by its ID.
func byID(answer func(id string, send func(*mappb.MapResponse)) bool) *fakeMap {
	f := &fakeMap{}
	f.answer = func(req *mappb.MapRequest, send func(*mappb.MapResponse)) bool { return answer(req.GetId(), send) }
	return f
}

func TestSecondAnswerToALateMessageIsADuplicate(t *testing.T) {
	left := make(chan struct{})
	m := dialMap(t, startScripted(t, byID(func(id string, send func(*mappb.MapResponse)) bool {
		<-left
		send(reply(id))
		send(reply(id))
		return true
	})), WithConcurrency(1))
	ctx, cancel := context.WithTimeout(testContext(t), 20*time.Millisecond)
	defer cancel()
	_, err := m.Do(ctx, Message{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(left)
	awaitBroken(t, m.Broken())
	require.ErrorContains(t, m.Close(), `duplicate ID: a second answer to "0-1"`)
	require.Equal(t, Stats{Sent: 1, Answered: 1, Late: 1}, m.Stats())
}

func TestMissingIDsAreAllNamedUpToABound(t *testing.T) {
	const n = 12
	got := 0
	m := dialMap(t, startScripted(t, byID(func(string, func(*mappb.MapResponse)) bool {
		got++
		return got < n
	})))
	errs := make(chan error, n)
	for range n {
		go func() {
			_, err := m.Do(testContext(t), Message{})
			errs <- err
		}()
	}
	for range n {
		err := <-errs
		var p *ProtocolError
		require.ErrorAs(t, err, &p)
		require.Equal(t, FaultMissingID, p.Fault)
		require.Len(t, p.IDs, n)
		require.ErrorContains(t, err, "and 4 more")
	}
	require.Equal(t, Stats{Sent: n, Failed: n}, m.Stats())
}

func TestDialAsksUntilTheServerIsReady(t *testing.T) {
	f := byID(func(id string, send func(*mappb.MapResponse)) bool {
		send(reply(id))
		return true
	})
	f.notReady.Store(3)
	m := dialMap(t, startScripted(t, f))
	_, err := m.Do(testContext(t), Message{})
	require.NoError(t, err)
	require.NoError(t, m.Close(), "this server ends its side, too")
}

func TestParseIDTakesOnlyWhatFormatIDWrites(t *testing.T) {
	for _, c := range []struct {
		place int
		turn  uint64
	}{{0, 1}, {499, 1 << 40}, {7, 10}} {
		place, turn, ok := parseID(formatID(c.place, c.turn))
		require.True(t, ok)
		require.Equal(t, c.place, place)
		require.Equal(t, c.turn, turn)
	}
	for _, id := range []string{
		"", "-", "1", "1-", "-1", "1-0", "01-1", "1-01", "1-2-3", "a-1", "1-b", " 1-1", "1--1",
		"99999999999-1", "1-99999999999999999999",
	} {
		_, _, ok := parseID(id)
		require.False(t, ok, "%q", id)
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("0-1")
	f.Add("499-18446744073709551615")
	f.Fuzz(func(t *testing.T, id string) {
		if place, turn, ok := parseID(id); ok {
			require.Equal(t, id, formatID(place, turn))
		}
	})
}
