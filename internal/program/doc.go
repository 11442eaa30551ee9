// Package program is the frame of the ready-made functions: what each of them does beside
// its work. It reads flags and settings, tells which build it is, shows the settings in force
// without secrets, and serves until a signal ends it.
//
//	NAME              serves
//	NAME --check      prints the settings in force, without secrets, and what is wrong with them
//	NAME --version    prints which build it is
package program
