package opening

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/why"
)

// On real servers a change of one pod's file is in force in both, the pool grants no more than the new limit, and why says that files differ.
func TestChangedFileOnRealStores(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(t *testing.T) string{
		"redis": func(t *testing.T) string { t.Helper(); return "redis://" + testenv.Redis(t).Addr() },
		"nats":  func(t *testing.T) string { t.Helper(); return testenv.NATS(t).URL() + "?replicas=1" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := url(t)
			content := func(tokens int) string { return fmt.Sprintf("store: %s\npool: p\nmax: %d\nlease: 3s\n", store, tokens) }
			a, b := mount(t, content(100)), mount(t, content(100))
			pa, pb := a.start(t, "a"), b.start(t, "b")
			both := func(want float64) bool { return pa.granted() == want && pb.granted() == want }
			require.Eventually(t, func() bool { return pa.Status().Rate > 0 && pb.Status().Rate > 0 }, 30*time.Second, 10*time.Millisecond)
			for _, tokens := range []int{40, 200} {
				a.update(t, content(tokens))
				require.Eventually(t, func() bool { return both(float64(tokens)) }, 90*time.Second, 10*time.Millisecond)
				granted, took := drawn(t, pa, pb)
				require.LessOrEqual(t, float64(granted), float64(tokens)*(took.Seconds()+0.1)+2)
			}
			s, err := Store(t.Context(), Config{Store: store})
			require.NoError(t, err)
			defer s.Close()
			require.Eventually(t, func() bool {
				o, err := protocol.LoadOverview(t.Context(), s, "p")
				return err == nil && why.Explain(why.Pool(&o, time.Now())).Sentence ==
					"nothing holds callers back; the settings files of pods differ: "+o.File.String()+" counts for all, and b has another one"
			}, 30*time.Second, 100*time.Millisecond)
			b.update(t, content(100)+"burst: [\n")
			require.Eventually(t, func() bool {
				o, err := protocol.LoadOverview(t.Context(), s, "p")
				return err == nil && len(o.Processors) == 2 && o.Processors[1].FileFault
			}, 30*time.Second, 100*time.Millisecond)
			require.True(t, both(200))
		})
	}
}

// drawn returns how many tokens both pods grant within a few seconds, when callers ask for them all the time.
func drawn(t *testing.T, pods ...pod) (granted int, took time.Duration) {
	t.Helper()
	time.Sleep(2 * time.Second) // what was saved up before
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var callers sync.WaitGroup
	var mu sync.Mutex
	began := time.Now()
	for _, p := range pods {
		for range 4 {
			callers.Go(func() {
				for {
					if _, err := p.Acquire(ctx, 1); err != nil {
						return
					}
					mu.Lock()
					granted++
					mu.Unlock()
				}
			})
		}
	}
	callers.Wait()
	return granted, time.Since(began)
}
