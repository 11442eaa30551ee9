package mapper

import (
	"log/slog"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
)

// An Option changes how Wrap throttles.
type Option func(*wrapped)

// WithCost sets how many tokens a message draws. A message with a cost of zero or
// less draws none and never waits. cost is called once for each message, from
// many goroutines at once; when it panics the stream fails as if the handler had.
// Defaults to 1 for every message; so does nil.
func WithCost(cost func(keys []string, d mapsdk.Datum) int) Option {
	return func(w *wrapped) { w.cost = cost }
}

// ExemptDropped gives the tokens of a message back when the handler's result is
// one or more drops (mapsdk.MessageToDrop) and nothing else. An empty result is not
// a drop. It is for handlers that decide by themselves whether to make the call
// that the limit is about. By default a dropped message costs as much as any
// other.
func ExemptDropped() Option {
	return func(w *wrapped) { w.exemptDropped = true }
}

// WithLogger sets where it is logged why a message is not handled. Neither keys
// nor values are logged. Defaults to slog.Default(); so does nil.
func WithLogger(l *slog.Logger) Option {
	return func(w *wrapped) { w.log = l }
}
