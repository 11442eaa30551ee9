// Package grpcthrottle limits the calls of gRPC clients, and obeys what servers say about their own limits. [New] makes interceptors for a
// limiter of package throttle:
//
//	throttled, err := grpcthrottle.New(limiter)
//	if err != nil {
//		return err
//	}
//	conn, err := grpc.NewClient(target, append(throttled.DialOptions(), grpc.WithTransportCredentials(creds))...)
//
// It is a package of its own so that users of other packages don't link gRPC.
//
// # Draws
//
// A unary call draws before it is sent, and a stream before it is opened: one token, or with [WithCost] the cost of the message. With WithCost
// a stream on which the client sends many messages opens without a draw, and each message draws before it is sent.
//
// A call waits as throttle.Limiter does, and fails at once when its deadline is too near. Its permit is settled when it ends, which frees the
// slot of a [throttle.InFlight]. The permit of one message of many is settled when that is sent. All count as drawn, whatever the server
// answers. Tokens come back only for what surely never left: no connection took the call, or the stream ended before the message.
//
// # Retries
//
// [Interceptor.DialOptions] turns off gRPC's own retries (grpc.WithDisableRetry): they happen below all interceptors, without a token.
// Calls that no server has processed are still repeated by gRPC. A retrying interceptor belongs before these in the chain, so that
// each of its attempts draws. Interceptors after these have to pass on the options of a call.
//
// # Refusals
//
// A [Classifier] says which statuses are refusals; the default, [Generic], knows these:
//
//	status                                     class      the other calls of the process
//	ResourceExhausted with a RetryInfo         Wait       wait as long
//	ResourceExhausted without                  Wait       wait half a second, doubled each time, up to 30 s
//	Unavailable with a RetryInfo               Overload   wait as long
//
// Package httpthrottle explains the classes. The refused call itself fails with the server's status and is not repeated. A Wait with
// a time is also reported to the limiter ([throttle.Throttle.RetryAfter]), which pauses the pool if two of its processors receive one. An
// adaptive limit gets the outcome of each call, as by [throttle.Permit.Report]; a short pause is left to it.
//
// # Errors
//
// A draw that is refused fails the call with a gRPC status, from which errors.As finds the *throttle.Error:
//
//	ResourceExhausted    the tokens don't come in time; a RetryInfo has the time to retry, if it is known
//	FailedPrecondition   the limit can never grant the cost
//	Unavailable          the limiter is closed
//	Canceled             the context was cancelled
//	DeadlineExceeded     its deadline passed
package grpcthrottle
