// Command demo runs numathrottle's main job on one machine, with real parts. Four numaflow-go mapper processes, each wrapped with
// numathrottle, share one limit through a real store. They call one HTTP service that counts the calls on its own clock and refuses those
// above the bound. The lines of a text come in over the mappers' real gRPC sockets.
//
// It prints a line every second, and serves a console (package console) at a printed address. It adds a processor, kills one, stops one
// past its lease and continues it, and gives all the input to one. It ends with a verdict within 90 s, and exits with 1 if a promise was
// broken.
//
// Environment:
//
//	DEMO_INPUT  a text file; default: the source files of the Go installation
//	DEMO_STORE  nats://... or redis://...; default: an embedded NATS server
package main
