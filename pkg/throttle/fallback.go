package throttle

import (
	"context"
)

type fallbackKey struct{}

// withFallback is hook.WithFallback.
func withFallback(ctx context.Context) context.Context {
	return context.WithValue(ctx, fallbackKey{}, true)
}
