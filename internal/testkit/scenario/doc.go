// Package scenario plays tests that are written as text, in virtual time.
//
// A line "# ..." after an empty line begins a scenario with its promise. Every other line has commands, separated by ";", and their result
// after "=>". A remark comes after "//". Indented lines belong to the line before. Lines with "|" are a table: the scenario runs once for
// each row, and the row replaces the words of the first row.
//
// A result is words, such as "ok 100ms" or "quota tag=a retryafter=400ms 0s". "..." stands for all further words. 3..5, 3.. and ..5 are
// ranges of numbers or times. A line without "=>" must have no result, or one that begins with ok or waits.
//
// "+1s" lets time pass. "x10 take a 1" repeats a line, "x10/1s take a 1" once a second. Repeated words are counted: "ok*10", and 3..5*10
// stands for ten words. "within 2s share a => 1" repeats a line every ten milliseconds until it has that result, for two seconds at most;
// with "within 1s..2s" it must take a second at least. "during 5s/100ms take a => no" repeats a line every 100 ms for five seconds, each
// time with that result.
//
// A scenario with the line "# (it measures)" is skipped with -short and with the race detector. One with the line "# (in each world)" is
// played in each kind of world that the test names, others in the first. With the race detector the first has to do.
//
// The flag -update rewrites lines with another result, except for ranges, tables and lines with within or during.
//
// The commands, and what they act on, are a World. A command has words and settings: in "limit max=10 hard" limit and hard are words, and
// max=10 is a setting, in any order.
package scenario
