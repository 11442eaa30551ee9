// Package handlerproxy puts the limit in front of a Numaflow handler of any language. It runs between the platform and the handler: it
// serves the platform's socket, and calls the handler on another one.
//
//	platform  --map.sock-->  proxy: draws  --map.sock in another folder-->  handler
//
// # Decisions
//
// For every message the proxy calls the wrappers of pkg/mapper, pkg/sinker and pkg/sourcer. The handler that they wrap sends the message on
// and waits for its answer. So waiting, refusing and draining work as for a Go handler, by the same code.
//
// # Passing through
//
// Messages pass as their original bytes. The proxy reads an ID, an end mark, and the fields for a cost or a tag. It writes only answers of
// its own, and the size of a source's read. Unknown fields pass, and so do methods without messages, such as IsReady and AckFn.
//
// # Failures
//
// Each stream of the platform has its own stream to the handler. When one ends early, the other fails with the same status, and the
// platform redelivers the unanswered messages. An answer is passed on once: a second one for the same message is dropped and logged.
package handlerproxy
