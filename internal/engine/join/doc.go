// Package join implements the draw on several limiters at once: from all of them, or from none. It knows a limiter as a Source, which grants
// tokens and keeps a queue, and by its Seat, which orders its lock among the others and explains its refusals. An All tries its sources
// without waiting. If one refuses, an attempt of package waitqueue waits for all of them. Limiters that have no source are drawn from last,
// by their methods, and everything goes back if one of them refuses. So nothing is held while a caller waits. P is the permit of the
// limiters; what the permits of one draw have in common is settled by their package.
package join
