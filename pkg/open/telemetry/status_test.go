package telemetry

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/health"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The busiest tags are shown, and how many are not.
func TestTagsOfAPage(t *testing.T) {
	var tags []throttle.TagStatus
	for i := range health.MaxTags + 3 {
		tags = append(tags, throttle.TagStatus{Tag: fmt.Sprint(i), Used: int64(i), Refused: 1, Target: 5, By: "total"})
	}
	var l health.Limit
	addTags(&l, tags)
	require.Len(t, l.Tags, health.MaxTags)
	require.Equal(t, 3, l.MoreTags)
	require.Equal(t, health.Tag{Tag: "102", Used: 102, Refused: 1, Target: 5, By: "total"}, l.Tags[0])
	require.Equal(t, "0", tags[0].Tag, "what was given stays as it is")
}
