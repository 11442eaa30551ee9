// Package outbound sends requests safely to configured or computed targets. It dials only allowed addresses, logs in, signs, bounds the
// time of each attempt and the size of a response, and stops calling a destination that fails repeatedly.
//
// The layers, from the caller to the wire; retries and limits are above:
//
//	Breakers.Guard   one breaker for each destination
//	Attempt          login, signature, time limit; failures become answers with status 0
//	http.Transport   phases' time limits, TLS, proxy, the check of addresses
//
// Errors contain no header, no secret and no URL.
package outbound
