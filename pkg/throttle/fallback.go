package throttle

import "context"

type fallbackKey struct{}

// WithFallback says that whoever calls with this context has something else to do with what a spent budget refuses, if
// that says so (Budget.Then is fallback): then the draw fails at once, with Error.Fallback. Other draws wait for the end of
// the budget's window, if their deadlines allow it.
func WithFallback(ctx context.Context) context.Context {
	return context.WithValue(ctx, fallbackKey{}, true)
}

func hasFallback(ctx context.Context) bool { return ctx.Value(fallbackKey{}) != nil }
