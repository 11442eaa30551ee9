// Package cli is the command numathrottle: it shows pools to operators and changes their settings. It observes from outside, without being
// a processor.
//
//	status   the processors of a pool, their shares, and the limit in force
//	pools    the pools of the store
//	console  the same in a browser
//	limit    the override of a pool's limit: show, set, clear
//	check    the configuration in force, and its faults
//	proxy    the limit in front of programs in any language; proxies are processors
//
// Each command has its own file, and a line in the list in cli.go.
package cli
