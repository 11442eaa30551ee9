// Package why says in one sentence what limits the callers of a pool: the cause, the affected calls, since when, until when, and the
// remedy.
//
// Explain is pure: the command, the console, /statusz and /readyz collect a State from their view, and show its answer. The sentence leaves
// out unknown facts.
package why
