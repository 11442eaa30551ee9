package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// The requests of a batch wait together no longer than limitWait, however many they are: the rest of a batch and a full one
// are done before the pod is killed. What was not sent is not acknowledged.
func TestABatchWaitsForTheLimitsNoLongerThanLimitWait(t *testing.T) {
	service := startService(t, nil)
	r := start(t, env{
		"URL": service.URL, "LIMIT_WAIT": "500ms", "CONCURRENCY": "4", "FAIL_DELAY": "1ms",
		"NUMATHROTTLE_MAX": "20", "NUMATHROTTLE_BURST": "1",
	})
	began := time.Now()
	results := r.do(numbered(200)...) // 10 s, of which no request would have to wait for more than 200 ms
	require.Less(t, time.Since(began), 5*time.Second)
	sent := 0
	for _, result := range results {
		switch result.Status {
		case dataplane.SinkSuccess:
			sent++
		default:
			require.Equal(t, dataplane.SinkFailure, result.Status)
			require.Equal(t, "throttled (limit)", result.Error)
		}
	}
	require.Len(t, service.Requests(), sent)
	require.Positive(t, sent)
	require.Less(t, sent, 100)

	results = r.do(numbered(1)...)
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(results), "the next batch has a patience of its own")
}
