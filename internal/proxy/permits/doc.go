// Package permits hands out permits of one limit over HTTP, for programs in any language, and optionally serves Envoy's rate limit service of
// package envoy.
//
//	POST /v1/acquire   waits for tokens and returns a permit
//	POST /v1/settle    ends a permit with the real cost of the call
//	POST /v1/cancel    gives all tokens of a permit back
//	POST /v1/report    reports the outcome of a call
//	POST /v1/pause     pauses the limit, or ends a pause
//	GET  /v1/openapi.yaml
//
// openapi.yaml describes the API, and a test compares it with the handlers.
//
// A permit has a lease. If it is neither settled nor cancelled by its end, because its client died, it is settled as drawn: its tokens
// count, and its slot is free again. Repeated settlements change nothing, so a client that got no answer may retry.
package permits
