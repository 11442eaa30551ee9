// Command demo runs numathrottle's main job on one machine, with real parts: four
// numaflow-go mapper processes, each wrapped with numathrottle, share one limit
// through a real store, and call one HTTP service that counts the calls on its
// own clock and refuses what is above the bound. The lines of a text come in over
// the mappers' real gRPC sockets.
//
// While it runs it prints a line every second, and serves a console (package console) at the address that
// it prints. It adds a processor, kills one,
// stops one past its lease and continues it, and gives all the input to one; it
// ends with a verdict within 90 s and exits with 1 when a promise was broken.
//
// Environment:
//
//	DEMO_INPUT  a text file; default: the source files of the Go installation
//	DEMO_STORE  nats://... or redis://...; default: an embedded NATS server
package main
