// Package envoyrls answers Envoy's rate limit service, envoy.service.ratelimit.v3, from a limiter.
// Envoy asks it, and so do Istio, Contour and Emissary, once for each request that their routes name. A route can report
// the cost of a request, too, when its response is over (apply_on_stream_done): Envoy ignores the answer to that.
//
// Nothing in the protocol tells a request that asks from one that reports. This is how a descriptor is read:
//
//   - hits_addend of the descriptor is 0: it asks whether anything may pass now, and takes nothing. Debt and pauses count.
//   - hits_addend of the descriptor is above 0: it is a cost. It is always charged, as debt where it does not fit. The answer is OK where
//     anything could pass before. With Config.AskOnly it asks, as one without.
//   - hits_addend of the descriptor is not set: it asks for the hits_addend of the request, 1 by default, and takes nothing if it is refused. Where
//     the same route (the domain and the keys of the entries) has asked with zero hits within an hour, a hits_addend of the
//     request is a cost.
//   - is_negative_hits: it gives back, at most what was drawn and charged here for its tag in the last hour.
//
// Envoy AI Gateway sends no hits_addend, or 0, before a request, and the descriptor's own after it. Envoy's reference service charges
// whatever it answers, so that requests that ask count, too, when they are refused; here callers that are refused and try again do
// not slow down others.
//
// A request that asks never waits unless it is configured to. The
// descriptors are tags: the values of a descriptor's entries, joined by "/", or the value of one
// entry alone. Where the limiter knows tags, all of them have to agree. Several descriptors that
// name different hits draw the largest. A call that is refused gets Retry-After, reason and tag as
// headers of the answer.
package envoyrls
