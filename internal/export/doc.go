// Package export makes the OpenTelemetry providers for this module's exports in a program that has none: from the standard variables
// OTEL_*, and for the health server's /metrics. It is the only package that knows the OpenTelemetry SDK.
//
// All users in a process share its providers, because they need only one port or connection to a collector. The providers end with their
// last user.
package export
