package storetest_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/short"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/storetest"
)

// A slowServer takes for most syncs nearly as long as a pool's clock can follow, so that as much time as possible
// passes between the steps of a case. Now and then one takes longer, and counts as no time.
type slowServer struct{ *server }

func (s slowServer) Sync(ctx context.Context, req driver.Request) (driver.Answer, error) {
	switch clamp := driver.Clamp(max(req.Lease, time.Millisecond)); rand.IntN(20) {
	case 0:
	case 1:
		time.Sleep(clamp + clamp/4)
	default:
		time.Sleep(clamp*3/4 + rand.N(clamp/5))
	}
	return s.server.Sync(ctx, req)
}

// A case that holds only where steps follow each other at once fails on a busy machine.
func TestTheSuitePassesOnASlowServer(t *testing.T) {
	short.Skip(t, "it waits for each step")
	t.Parallel()
	s := newServer()
	s.knowsNew = true
	h := s.harness()
	h.New = func(testing.TB) driver.Store { return slowServer{s} }
	storetest.Run(t, h)
}
