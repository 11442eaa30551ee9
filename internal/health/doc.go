// Package health is a small HTTP server that tells how a process and its limits are
// doing: for a kubelet's probes, for Prometheus, and for a person with a browser.
//
//	/healthz   200 as long as the process serves
//	/readyz    200 when every limit is ready, else 503; a line for each limit says what holds its callers back
//	/metrics   Prometheus' text format
//	/statusz   a page; JSON with ?format=json or Accept: application/json
//
// All limits of a process that name one address share one server there. It has no
// login and shows no secret; who can reach the port can read the names and the
// figures.
package health
