// Package waitqueue is the queue of callers that wait at a limiter, first come first
// served, and the way to draw from several limiters at once without holding anything while
// waiting: an Attempt. P is the permit of the limiters.
package waitqueue
