package duration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Minute: "1m", 10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m", time.Hour + time.Second: "1h0m1s",
		24 * time.Hour: "24h", 1500 * time.Millisecond: "1.5s", 10 * time.Second: "10s", -time.Minute: "-1m", time.Millisecond: "1ms",
	} {
		require.Equal(t, want, Short(d))
		back, err := time.ParseDuration(want)
		require.NoError(t, err)
		require.Equal(t, d, back)
	}
}
