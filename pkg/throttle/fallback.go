package throttle

import "context"

type fallbackKey struct{}

// WithFallback says that callers with this context have an alternative to a draw that a spent budget refuses. If Budget.Then is fallback,
// such a draw fails at once, with Error.Fallback. Other draws wait for the end of the budget's window, if their deadlines allow it.
func WithFallback(ctx context.Context) context.Context {
	return context.WithValue(ctx, fallbackKey{}, true)
}

func hasFallback(ctx context.Context) bool { return ctx.Value(fallbackKey{}) != nil }
