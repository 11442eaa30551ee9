// Package why says in one sentence what holds the callers of a pool back: what, whose calls, since when, until when, and what to do about it.
//
// Explain is pure: the command, the console, /statusz and /readyz collect a State from what they see, and show what Explain makes of it. What an
// observer cannot know is left out of the sentence.
package why
