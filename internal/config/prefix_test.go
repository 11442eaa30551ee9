package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/config"
)

type near struct{ Max, URL string }

func nearFields() []config.Field[*near] {
	return []config.Field[*near]{
		{Key: "max", Value: config.Text(func(c *near) *string { return &c.Max })},
		{Key: "url", Prefix: "HTTP_SINK_", Value: config.Text(func(c *near) *string { return &c.URL })},
	}
}

func TestMisspeltVariablesAreRefused(t *testing.T) {
	for entry, want := range map[string]string{
		"NUMATHROTLE_MAX=1":     "NUMATHROTLE_MAX is not a variable of http-sink; did you mean NUMATHROTTLE_MAX?",
		"NUMA_THROTTLE_MAX=1":   "NUMA_THROTTLE_MAX is not a variable of http-sink; did you mean NUMATHROTTLE_MAX?",
		"NUMATHROTTEL_MAX=1":    "NUMATHROTTEL_MAX is not a variable of http-sink; did you mean NUMATHROTTLE_MAX?",
		"numathrotle_max=1":     "numathrotle_max is not a variable of http-sink; did you mean NUMATHROTTLE_MAX?",
		"NUMA_TRHOTTLE_MAXX=1":  "NUMA_TRHOTTLE_MAXX is not a variable of http-sink; did you mean NUMATHROTTLE_MAX?",
		"NUMATHROTTLEMAX=1":     "NUMATHROTTLEMAX is not a variable of http-sink; did you mean NUMATHROTTLE_MAX?",
		"NUMATHROTTLE.MAX=1":    "NUMATHROTTLE.MAX is not a variable of http-sink; did you mean NUMATHROTTLE_MAX?",
		"NUMATHROTTLES_COLOR=1": "NUMATHROTTLES_COLOR is not a variable of http-sink",
		"HTTPSINK_URL=x":        "HTTPSINK_URL is not a variable of http-sink; did you mean HTTP_SINK_URL?",
	} {
		var c near
		faults := config.Load(nearFields(), []string{"PATH=/bin", entry}, &c)
		require.Len(t, faults, 1, entry)
		require.Equal(t, "numathrottle: "+want, faults[0].Error(), entry)
		require.Zero(t, c, entry)
	}
}

func TestOtherVariablesAreNoneOfOurs(t *testing.T) {
	var c near
	require.Empty(t, config.Load(nearFields(), []string{
		"NUMAFLOW_POD=a", "NUMAFLOW_NAMESPACE=b", "NUMA_NODE=0", "NUMAFLOW_READ_AHEAD=true", "THROTTLE_MAX=3", "HTTP_LINK_TIMEOUT=3s", "HTTP_PROXY=x",
		"NUMBER_OF_PROCESSORS=2", "=C:=C:\\", "", "_", "A", "NUMATHROTTLE_MAX=1",
		// What Kubernetes sets in every pod for a Service with the name numa-throttle.
		"NUMA_THROTTLE_SERVICE_HOST=10.0.0.1", "NUMA_THROTTLE_SERVICE_PORT=80", "NUMA_THROTTLE_PORT=tcp://10.0.0.1:80",
		"NUMA_THROTTLE_PORT_80_TCP_ADDR=10.0.0.1",
	}, &c))
	require.Equal(t, "1", c.Max)
}
