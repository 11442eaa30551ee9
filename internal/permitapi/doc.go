// Package permitapi hands out permits over HTTP, for programs in any language:
//
//	POST /v1/acquire   waits for tokens, and returns a permit
//	POST /v1/settle    ends a permit with what the call really cost
//	POST /v1/cancel    gives all tokens of a permit back
//	POST /v1/report    tells what the called service made of a call
//	POST /v1/pause     pauses the limit, or ends a pause
//	GET  /v1/openapi.yaml
//
// openapi.yaml describes all of it, and a test compares it with the handlers.
//
// A permit has a lease. One that is neither settled nor cancelled by then, because its client
// has died, is settled as drawn: its tokens count, and its slot is free again. Calls that
// repeat a settlement change nothing, so a client that got no answer may ask again.
package permitapi
