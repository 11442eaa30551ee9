// Package program is the frame of the ready-made functions: everything but their work. It reads flags and settings, prints the version,
// shows the settings in force without secrets, and serves until a signal ends it.
//
//	NAME              serves
//	NAME --check      prints the settings in force, without secrets, and their faults
//	NAME --version    prints the version
package program
