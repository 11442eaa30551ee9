// Package export makes the OpenTelemetry providers that this module exports with, when the
// program has none of its own: from the standard variables OTEL_*, and for the
// health server's /metrics. It is the only package that knows the OpenTelemetry SDK.
//
// The providers of a process are shared by all who ask for them, for a port or a
// connection to a collector is needed once; they end with the last who lets go.
package export
