// Package taglevel is for tags of two levels: a team, and a key of it. A call draws for the tag `team` and for the tag `team/key`, by the
// two rules of one setting. It has the setting, the names, and the limiter that finds both levels of a name.
package taglevel
