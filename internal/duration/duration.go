// Package duration formats durations for people.
package duration

import (
	"strings"
	"time"
)

// Short formats d as people write it: 1m rather than 1m0s. time.ParseDuration reads it.
func Short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
