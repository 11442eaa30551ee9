package limit

import (
	"strings"
	"time"
)

// ShortDuration formats d as people write it: 1m rather than 1m0s. time.ParseDuration reads it.
func ShortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
