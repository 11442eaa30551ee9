// Package otelthrottle tells OpenTelemetry what a limit does: metrics of the limit and of
// its pool, and a span for each call that waits. It uses the OpenTelemetry API alone; which
// exporter gets them is up to the providers.
//
//	telemetry, err := otelthrottle.New()
//	member, err := consensus.Join(ctx, store, "pool", consensus.WithOnSync(telemetry.OnSync("llm", "redis")))
//	th, err := throttle.New(limit, throttle.WithName("llm"), throttle.WithSharer(member), throttle.WithObserver(telemetry))
//	stop, err := telemetry.Watch(otelthrottle.Watched{Throttle: th, Member: member})
//
// [github.com/numaproj-contrib/numathrottle.Open] does all of this.
//
// # What it costs
//
// A draw whose tokens are at hand costs nothing: no instrument is called for it. The
// running totals of the limiter are read when metrics are collected. A call that waits is
// recorded once, when its wait is over, and gets a span only if its context carries one
// that it can be part of. Of each tag with a quota by name, every five seconds at most, such
// a span has an event with what the target of the tag is worked out from.
//
// # Labels
//
// limit is the limiter's name, reason one of throttle.Reasons, outcome and store one of a few
// words, tag one that is configured. So the number of series does not depend on what is
// drawn: other tags stand in spans only. Instruments lists all metrics; docs/metrics.md explains them.
package otelthrottle
