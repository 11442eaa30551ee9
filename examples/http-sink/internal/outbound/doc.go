// Package outbound sends requests to places that are configured or computed, with care: it
// dials allowed addresses only, logs in, signs, bounds how long each attempt takes and how
// much of an answer is read, and stops calling a destination that fails again and again.
//
// The layers, from the caller to the wire; retries and limits are above:
//
//	Breakers.Guard   one breaker for each destination
//	Attempt          login, signature, time limit; failures become answers with status 0
//	http.Transport   phases' time limits, TLS, proxy, the check of addresses
//
// Errors hold no header, no secret and no URL.
package outbound
