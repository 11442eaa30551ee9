package sharing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

func TestUsageSince(t *testing.T) {
	const d = time.Second
	base := Usage{Used: 50, Offered: 200, Granted: 60, Refused: 5}
	for _, tc := range []struct {
		name          string
		now           Usage
		used, offered int64
	}{
		{"nothing", base, 0, 0},
		{"idle", Usage{Used: 50, Offered: 300, Granted: 60, Refused: 5}, 0, limit.WholeShare},
		{"half", Usage{Used: 100, Offered: 300, Granted: 110, Refused: 5}, limit.WholeShare / 2, limit.WholeShare},
		{"all given back", Usage{Used: 50, Offered: 300, Granted: 61, Refused: 5}, 1, limit.WholeShare},
		{"more given back than drawn", Usage{Used: 20, Offered: 300, Granted: 61, Refused: 5}, 1, limit.WholeShare},
		{"refused", Usage{Used: 50, Offered: 300, Granted: 60, Refused: 6}, 1, limit.WholeShare},
		{"refused and empty", Usage{Used: 60, Offered: 300, Granted: 70, Refused: 6, Empty: true}, limit.WholeShare, limit.WholeShare},
		{"empty and content", Usage{Used: 60, Offered: 300, Granted: 70, Refused: 5, Empty: true}, limit.WholeShare / 10, limit.WholeShare},
		{"waiting", Usage{Used: 60, Offered: 300, Granted: 70, Refused: 5, Waiting: true}, limit.WholeShare, limit.WholeShare},
		{"above what was offered, from the burst", Usage{Used: 200, Offered: 300, Granted: 210, Refused: 5}, limit.WholeShare * 3 / 2, limit.WholeShare},
		{"out of bounds", Usage{Used: 1e9, Offered: 1e9, Granted: 1e9, Refused: 5}, MaxShare, MaxShare},
	} {
		t.Run(tc.name, func(t *testing.T) {
			used, offered := tc.now.Since(base, d, 100, time.Second)
			require.Equal(t, []int64{tc.used, tc.offered}, []int64{used, offered})
		})
	}
	used, offered := base.Since(Usage{}, 0, 100, time.Second)
	require.Zero(t, used+offered, "in no time")
	used, offered = base.Since(Usage{}, d, 0, time.Second)
	require.Zero(t, used+offered, "of no limit")
}
