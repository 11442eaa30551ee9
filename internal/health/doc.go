// Package health is a small HTTP server that shows the status of a process and its limits: for a kubelet's probes, Prometheus and browsers.
//
//	/healthz   200 as long as the process serves
//	/readyz    200 when every limit is ready, else 503; a line for each limit says what limits its callers
//	/metrics   Prometheus' text format
//	/statusz   a page; JSON with ?format=json or Accept: application/json
//
// All limits of a process that name the same address share one server. It has no login and shows no secret; anyone who can reach the port
// can read the names and figures.
package health
