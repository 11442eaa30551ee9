// Package calls plays scenarios of HTTP calls to a service that follows a script, in virtual time: through package httpthrottle, or through
// what a package's own commands make of its program, such as a proxy. The text of a scenario is that of package scenario. F are fields in
// any case and with dots; without them a question has all simple ones that are not zero. N is a number, D a time, P the name of a call.
// Words in [] are optional.
//
// The service answers attempts in turn, in the order in which they come; the last answer goes on:
//
//	service [ANSWER]: it forgets its script and the attempts so far. An ANSWER by itself is one more: service 429 retry-after=2; 200
//
// An ANSWER is a status, or reset for a connection that breaks, with headers such as retry-after=2. takes=D is the time until its head.
// With host=H it is for attempts to that host, which have their turns by themselves. Its body is a text: code=C and message=a_b are those
// of an error in JSON, size=N has N letters, text=T is T, text=- nothing. A byte comes every=D, and at its end=never or end=broken. nobody
// and nil are answers without a body; both switches protocols.
//
// Limiters. The newest is that of the clients after it:
//
//	limit [NAME] [FIELD=1] [name=llm] [maxretryafter=D]: a limiter of throttle.Limit; indented lines are its quotas
//	slots N: a limiter of calls in flight
//	all NAME NAME/call: several limiters; one with /call is drawn from per call (PerCall)
//	script [as=NAME] STEP..: a throttletest.Limiter. A STEP is grant, deny, block, closed (the limiter is closed), REASON/D (a denial with that
//	  reason, to retry after D), or pass (the draw waits for the next command pass).
//	pass [N]: the next N draws at a step pass go on
//	listener [adapts] [tags]: a limiter that grants everything and keeps what it is told; with tags it has one for each tag
//	late D: the newest so far, but each draw begins D later, whatever becomes of its context
//	pause TAG D: the newest limiter pauses; TAG is - for all
//
// Calls:
//
//	client [NAME] [limit=NAME] [attempts=N] [maxwait=D] [maxelapsed=D] [maxpause=D] [buffer=N] [cost=N] [key=K] [meter=M] [classify=C]
//	  [feedback=F] [failures] [errors] [host]: a transport with these options of httpthrottle. limit=none: it has no limiter.
//	  The key of a call is K-1, K-2.., or random. The meter counts bytes, unknown, or is none. C is a classifier for LLMs, or busy, which
//	  obeys the header Busy. F is pause (all such clients share one), notes (a listener that keeps its reports), or noted (both).
//	  The tag is the header Tag, or with host the host.
//	call [METHOD] [as=P] [client=NAME] [path=U] [tag=T] [within=D] [body=T] [size=N] [length=N] [every=D] [once] [HEADER=V]: a call in the
//	  background. T with * is another tag for each. U is a path with a query, or a URL. A byte of the body comes every=D. A body with once
//	  cannot be had again, with gone not a second time, with unreadable not at all. With ended its context has ended. With open its answer
//	  isn't read.
//	read P [N]: the next bytes of an open answer, and the time since the call began
//	write P T: what the service has got, after T was written to an answer that switches protocols
//	close P: an open answer is closed
//	get ..: like call, but waits for the end of it and tells how it ended
//	result P: the results of all calls P
//	cancel P [WHY]
//
// In a text, a header or a tag "\x20" is a blank, and x…20 are 20 letters.
//
// A result is the status, with the field reason of an error in JSON, or the reason and the fields of a *throttle.Error, the class of a
// RefusedError, and deadline. Other errors have their text. After it comes the time until the answer, if it is not zero.
//
// Questions:
//
//	got X: the text or a header of the answer that was looked at last; error.F is a field of the error in it
//	text, error F, refusal F: of the error of the call that was looked at last
//	by: the limiter that this error names
//	times: when attempts came, since the service began
//	gaps [N]: the times between attempts, without the first N
//	apart [X]: how many different X
//	sent X [length]: the method, host, path, body or a header of each attempt. X may also be again: whether its body can be had again.
//	answers: whether each answer was read whole, cut, or is open
//	draws [NAME] F, used [NAME], waiting [NAME]: of the script
//	take [NAME]: a token, which stays taken
//	status [NAME] F; stats [NAME] F: WaitStats
//	used-by: the tokens of each tag
//	observed F, over F: what an observer is told
//	told: what listeners are told
//	refusals F, accepted F: what notes have
//	log KEY: this attribute of each line, its level, or its msg
//
// A package's own commands (Commands) get an Order. They make a client of any transport (Client), such as one to a handler (Serve), or do
// other work that ends with a result (Work), with the limiters, the service and the log of the scenario.
//
// In each scenario a call gets the whole answer to its own attempt, with its headers; its request does not change and its body is closed.
// Each attempt has the whole body of the request. Answers that nobody gets are read and closed, permits are settled, and neither an error
// nor the log has a secret. Over a connection an answer may have more headers.
package calls
