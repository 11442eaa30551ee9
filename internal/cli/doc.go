// Package cli is the command numathrottle: it shows pools to operators and changes what they may
// change. It looks from outside, without being a processor.
//
//	status   the processors of a pool, their shares, and the limit in force
//	pools    the pools of the store
//	console  the same in a browser
//	limit    the override of a pool's limit: show, set, clear
//	check    the configuration in force, and what is wrong with it
//	proxy    the limit in front of programs in any language; these are processors
//
// Each command has a file of its own, and a line in the list in cli.go.
package cli
