package poolview

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestPausesAt(t *testing.T) {
	now := time.Unix(1000, 0)
	lasting, running, over := throttle.Paused{Tag: "lasting"}, throttle.Paused{Tag: "running", Until: now.Add(1)}, throttle.Paused{Tag: "over", Until: now}
	require.Equal(t, []throttle.Paused{lasting, running}, PausesAt([]throttle.Paused{over, lasting, running}, now))
}
