// Package waitqueue implements the queue of callers that wait at a limiter, first come first served. An Attempt draws from several limiters
// at once without holding anything while it waits. P is the permit of the limiters.
package waitqueue
