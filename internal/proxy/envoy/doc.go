// Package envoy implements Envoy's rate limit service, envoy.service.ratelimit.v3, with a limiter. Envoy calls it (also in Istio,
// Contour and Emissary) once for each request on a route with rate limits. A route can also report the cost of a request, when its response
// is complete (apply_on_stream_done): Envoy ignores the answer to that.
//
// The protocol does not distinguish a request for tokens from a report. A descriptor is interpreted as follows:
//
//   - hits_addend of the descriptor is 0: it asks whether anything may pass now, and takes nothing. Debt and pauses count.
//   - hits_addend of the descriptor is above 0: it is a cost. It is always charged, as debt if it does not fit. The answer is OK if
//     anything could pass before. With Config.AskOnly it is a request for tokens, as in the next case.
//   - hits_addend of the descriptor is not set: it asks for the hits_addend of the request, 1 by default, and takes nothing if refused. If
//     the same route (the domain and the keys of the entries) has asked with zero hits within an hour, a hits_addend of the
//     request is a cost.
//   - is_negative_hits: it gives back tokens, at most those drawn and charged here for its tag in the last hour.
//
// Envoy AI Gateway sends no hits_addend, or 0, before a request, and the descriptor's own after it. Envoy's reference service charges every
// request, so that refused requests count, too. Here refused callers that retry do not slow down others.
//
// A request for tokens waits only if configured to. The descriptors are tags: the values of a descriptor's entries, joined by "/", or the
// value of one entry. If the limiter supports tags, all of them have to agree. Several descriptors with different hits draw the largest.
// The answer to a refused call has Retry-After, reason and tag as headers.
package envoy
