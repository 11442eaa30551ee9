// Package proxy has the common parts of the proxies: the settings of their limits and their listeners, and the form of their errors:
//
//	HTTP/1.1 429 Too Many Requests
//	Retry-After: 2
//
//	{"error": {"reason": "limit", "message": "...", "limit": "ns/pipe/map", "tag": "a", "tokens": 3, "retry_after_seconds": 1.25}}
//
// A proxy has one limit for costs and, if set, one for requests and one for calls in flight.
package proxy
