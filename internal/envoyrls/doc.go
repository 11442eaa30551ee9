// Package envoyrls answers Envoy's rate limit service, envoy.service.ratelimit.v3, from a limiter.
// Envoy asks it, and so do Istio, Contour and Emissary, once for each request that their routes name.
//
// A call draws hits_addend tokens, 1 by default, and never waits unless it is configured to. The
// descriptors are tags: the values of a descriptor's entries, joined by "/", or the value of one
// entry alone. Where the limiter knows tags, all of them have to agree. Several descriptors that
// name different hits draw the largest. A call that is refused gets Retry-After, reason and tag as
// headers of the answer.
package envoyrls
