package numathrottle_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
)

// However a Config is printed, no secret and no login of the store's URL shows, and what is set does.
func TestAConfigShowsNoSecret(t *testing.T) {
	const canary = "canary-7f3a"
	c := numathrottle.Config{
		Store: "redis://user:" + canary + "@h", Pool: "geocoder", StorePassword: numathrottle.NewSecret(canary),
		StoreToken: numathrottle.NewSecret(canary), StoreSentinelPassword: numathrottle.NewSecret(canary),
	}
	encoded, err := json.Marshal(map[string]any{"value": c, "pointer": &c})
	require.NoError(t, err)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("text", "config", c, "pointer", &c)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("json", "config", c, "pointer", &c)
	type holder struct{ Config numathrottle.Config }
	texts := []string{string(encoded), log.String(), c.String(), c.GoString()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, c), fmt.Sprintf(verb, &c), fmt.Sprintf(verb, holder{c}))
	}
	for _, text := range texts {
		require.NotContains(t, text, canary)
		require.Contains(t, text, "geocoder")
	}
}
