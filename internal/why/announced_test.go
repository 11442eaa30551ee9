package why

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Before anything is announced, the limit that a pool begins with is named as such, and not as one that pods are configured with.
func TestTheLimitBeforeAnythingIsAnnouncedIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		var nodes []*node
		for i, most := range []int{900, 600} {
			l := hook.Follow(throttle.Limit{Max: most, Per: time.Minute}, 60).(throttle.Limit) //nolint:forcetypeassert,errcheck // as documented
			nodes = append(nodes, startNode(t, store, string(rune('a'+i)), l, nil))
		}
		ctx, cancel := context.WithCancel(t.Context())
		nodes[0].begin(ctx, "", 50)
		time.Sleep(20 * time.Second)
		for _, a := range []Answer{nodes[0].says(), seen(t, store)} {
			require.Contains(t, a.Sentence, "the limit of 60 per 1m, until the called service announces one, is used in full")
		}
		cancel()
		time.Sleep(time.Second)
	})
}

// What the called service announces is named where it is below the limit in force, or is that.
func TestWhatTheServiceAnnouncesIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		follows            bool
		busy, idle, higher string
	}{
		"not followed": {
			busy:   "the limit of 600 per 1m is used in full; 5 callers wait; the called service announces 300 per 1m, less than the limit of 600 per 1m",
			idle:   "nothing holds callers back; the called service announces 300 per 1m, less than the limit of 600 per 1m",
			higher: "nothing holds callers back",
		},
		"followed": {
			follows: true, busy: "the limit of 300 per 1m, which the called service announces, is used in full; 5 callers wait",
			idle: "nothing holds callers back", higher: "nothing holds callers back",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, l := memstore.New(), throttle.Limit{Max: 600, Per: time.Minute}
				if tc.follows {
					l = hook.Follow(l, 0).(throttle.Limit) //nolint:forcetypeassert,errcheck // as documented
				}
				n := startNode(t, store, "a", l, nil)
				hook.Announce(n.th, 300)
				time.Sleep(20 * time.Second)
				require.Equal(t, tc.idle, n.says().Sentence)
				require.Equal(t, tc.idle, seen(t, store).Sentence)
				ctx, cancel := context.WithCancel(t.Context())
				n.begin(ctx, "", 5)
				time.Sleep(20 * time.Second)
				require.Equal(t, tc.busy, n.says().Sentence)
				require.Equal(t, tc.busy, seen(t, store).Sentence)
				cancel()
				hook.Announce(n.th, 900)
				time.Sleep(20 * time.Second)
				require.Equal(t, tc.higher, seen(t, store).Sentence)
				hook.Announce(n.th, 300)
				time.Sleep(4 * time.Minute)
				require.Equal(t, tc.idle, seen(t, store).Sentence)
				time.Sleep(2 * time.Minute)
				require.Equal(t, tc.higher, seen(t, store).Sentence, "it was long ago")
			})
		})
	}
}
