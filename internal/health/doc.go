// Package health shows the status of a process and its limits: by a small HTTP server for a kubelet's probes, Prometheus and browsers, and by
// OpenTelemetry's exporters. It is the only package that knows the OpenTelemetry SDK.
//
//	/healthz   200 as long as the process serves
//	/readyz    200 when every limit is ready, else 503; a line for each limit says what limits its callers
//	/metrics   Prometheus' text format
//	/statusz   a page; JSON with ?format=json or Accept: application/json
//
// All limits of a process that name the same address share one server. It has no login and shows no secret; anyone who can reach the port
// can read the names and figures.
//
// Exporters makes the providers that the standard variables OTEL_* request, in a program that has none. All users in a process share them,
// because they need only one port or connection to a collector. They end with their last user.
package health
