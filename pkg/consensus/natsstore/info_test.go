package natsstore

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// What servers of several versions tell of a stream, shortened.
func TestStreamInfo(t *testing.T) {
	for name, tt := range map[string]struct {
		reported string
		identity string
		err      error
		twice    bool
	}{
		"2.9.10 standalone": {
			reported: `{"config":{"num_replicas":1},"created":"2026-11-21T10:08:27.23579397Z"}`,
			identity: "2026-11-21T10:08:27.23579397Z", twice: true,
		},
		"2.15 standalone": {
			reported: `{"config":{"num_replicas":1},"created":"2026-11-21T10:08:27Z","ts":"2026-11-21T10:09:00Z","cluster":{"leader":"one"}}`,
			identity: "2026-11-21T10:08:27Z one", twice: true,
		},
		"2.9.10 replicated": {
			reported: `{"config":{"num_replicas":3},"created":"2026-11-21T11:08:27+01:00","cluster":{"leader":"b","replicas":[{"name":"a"},{"name":"c"}]}}`,
			identity: "2026-11-21T10:08:27Z b", twice: false,
		},
		"2.9.10 in a cluster, not replicated": {
			reported: `{"config":{"num_replicas":1},"created":"2026-11-21T10:08:27Z","cluster":{"leader":"b"}}`,
			identity: "2026-11-21T10:08:27Z b", twice: true,
		},
		"2.9.10 on its way from three replicas to one": {
			reported: `{"config":{"num_replicas":1},"created":"2026-11-21T10:08:27Z","cluster":{"leader":"b","replicas":[{"name":"a"}]}}`,
			identity: "2026-11-21T10:08:27Z b", twice: false,
		},
		"2.10 replicated": {
			reported: `{"config":{"num_replicas":3},"created":"2026-11-21T10:08:27Z","ts":"2026-11-21T10:09:00Z","cluster":{"leader":"b","replicas":[{}]}}`,
			identity: "2026-11-21T10:08:27Z b", twice: true,
		},
		"without a leader": {
			reported: `{"config":{"num_replicas":3},"created":"2026-11-21T10:08:27Z","ts":"2026-11-21T10:09:00Z","cluster":{"replicas":[{"name":"a"}]}}`,
			err:      errNoLeader, twice: true,
		},
		"not made quite yet": {
			reported: `{"config":{"num_replicas":1},"created":"0001-01-01T00:00:00Z"}`,
			err:      errMade, twice: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var info streamInfo
			require.NoError(t, json.Unmarshal([]byte(tt.reported), &info))
			identity, err := info.identity()
			require.Equal(t, tt.identity, identity)
			require.Equal(t, tt.err, err)
			require.Equal(t, tt.twice, info.checksTwice())
		})
	}
}
