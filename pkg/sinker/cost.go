package sinker

import (
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
)

// CostBytes is a cost by size for [WithCost]: one token for every per bytes of the payload or part of it, at least one. per below 1 counts as
// 1.
func CostBytes(per int) func(d sinksdk.Datum) int {
	cost := admission.PayloadCost(per)
	return func(d sinksdk.Datum) int { return cost(d.Value()) }
}

// CostFromHeader is a cost for [WithCost], read from a header: a number of tokens such as 5, 4.2 or 5e2, rounded up. Without the header the
// message costs one token. With anything else in it the message is denied as too expensive, and logged to slog.Default(), at most once a
// minute.
func CostFromHeader(name string) func(d sinksdk.Datum) int {
	cost := admission.HeaderCost(name)
	return func(d sinksdk.Datum) int { return cost(d.Headers()) }
}

// TagFromHeader is a tag for [WithTag], read from a header; no tag without it.
func TagFromHeader(name string) func(d sinksdk.Datum) string {
	tag := admission.HeaderTag(name)
	return func(d sinksdk.Datum) string { return tag(d.Headers()) }
}

// TagFromKey is the key at an index, counted from zero, as a tag for [WithTag]; no tag if there are fewer keys.
func TagFromKey(index int) func(d sinksdk.Datum) string {
	tag := admission.KeyTag(index)
	return func(d sinksdk.Datum) string { return tag(d.Keys()) }
}
