package throttle

import (
	"context"
)

type fallbackKey struct{}

// withFallback is hook.WithFallback.
func withFallback(ctx context.Context) context.Context {
	return context.WithValue(ctx, fallbackKey{}, true)
}

func hasFallback(ctx context.Context) bool { return ctx.Value(fallbackKey{}) != nil }
