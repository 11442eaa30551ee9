// Package handlertest tries a Numaflow handler over its real socket, as Numaflow's core would call it, without a cluster.
//
// [Start] serves a handler of numaflow-go in the test itself. [Dial] connects to the socket of a handler that runs already, in any
// language:
//
//	func TestUpper(t *testing.T) {
//		h := handlertest.Start(t, mapper.Wrap(upper, limiter))
//		results, err := h.Map(t.Context(), handlertest.Message{Value: []byte("hello")})
//		require.NoError(t, err)
//		require.Equal(t, "HELLO", string(results[0][0].Value))
//	}
//
// There is a method for each kind of handler: Map, MapStream, BatchMap, Transform and Sink take messages and return what the
// handler answered to each, in the order of the messages. A source has Read, Ack, Nack and Pending. Reducers, side inputs and
// the routing of a vertex (retries, fallback sinks) are not played.
//
// # What is checked
//
// Every message is accounted for. Where the core would log a faulty answer and go on, the call here fails with [ErrProtocol] and
// names the fault and the message: an answer to a message that was never sent, a second answer, a message that the end of a
// stream or batch leaves without one, an end that is missing or not due, an empty answer of a transformer, an offset that is
// delivered twice. A fault that comes after the call has returned is the error of the next call, or of Close. Start fails the
// test with it.
//
// A message that is never answered holds a call until its context ends; without a deadline that is after a minute.
//
// The package is for tests; it is not meant for programs.
package handlertest
