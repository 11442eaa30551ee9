// Package pools plays scenarios of pools: real members and limiters on one store, in virtual time. The text of a scenario is that of
// package scenario. WHO are pods by name, separated by commas, or all that have not left: all, or all-a-b without some. N are tokens, F
// fields in any case and with dots, D a time. Words in [] are optional.
//
// Commands without a result:
//
//	limit [FIELD=1]: of throttle.Limit, for pods from now on; indented lines are its quotas
//	pod NAME [id=NAME] [FIELD=1] [slots=10] [callers=2] [draw=5] [policy=even] [onloss=stop] [lease=3s] [tag=gold] [file=100]: it joins.
//	  Its callers draw as fast as they can, draw tokens at a time. file is the limit in its settings file.
//	  With news it hears those of others. cut: see below. With away=5ms each request and each answer takes so long.
//	pods 4 ..: the pods p0 to p3
//	callers NAME WHO[:TAG] N [draw=1,60] [every=10ms] [try] [within=1s] [hold=5ms..9ms] [service=S]: N more callers at each pod.
//	  TAG with * is another one for each caller, or with names=2000 one of so many in turn. every is the time between two calls, and hold
//	  how long one takes. Both, and within, may be ranges. With every, callers go on after a refusal, and at the next pod of that name.
//	arrivals NAME WHO[:TAG] RATE ..: calls that come by themselves, RATE tokens per second at each pod
//	stop NAME: the callers of a pod or of that name stop
//	service S RATE [overloaded]: the service accepts so many calls a second, and refuses the others
//	kill WHO: the pods send nothing any more
//	leave WHO, leaves WHO: the pods leave; leaves doesn't wait for that
//	cut WHO, hang WHO, mend WHO: requests fail, get no answer, are well again
//	deaf WHO: the pods hear and tell no news
//	store forgets [skew=1h], store copies, store returns: the store loses its data, copies it, goes back to the copy
//	store unsure: the store cannot tell a new pool from a lost one
//	file WHO 50: the settings file has another limit
//	settle P N, cancel P: of permits
//	told WHO D REASON: RetryAfter
//
// Questions:
//
//	FIGURE WHO: share, ceiling, granted (tokens of its own callers), inuse (calls), tokens, inforce (the limit per second), cuts and part (of
//	  a backoff), and the requests and news so far: syncs, reserves, pushed
//	total FIGURE WHO: the sum
//	apart FIGURE WHO: the highest less the lowest
//	gain D FIGURE WHO: by how much each rises from now on
//	mark FIGURE WHO, then above FIGURE WHO: by how much each is above the mark
//	rate D NAME..: tokens per second from now on, of callers by their name or that of their pods. NAME/accepted and NAME/refused are calls
//	  per second, NAME/busy is how many are in flight on average, and a+b the sum.
//	drawn NAME, drawn D NAME: tokens so far, or from now on
//	now NAME: calls in flight
//	most NAME: the most calls in flight since the last look
//	closest NAME: the least time between two calls since the last look
//	fair NAME: the part of an even share that the pod with the least got since the last look
//	alike NAME: how many of its tags got any tokens since the last look, and Jain's index of their amounts
//	view WHO F: of consensus.View; status WHO F; throttled WHO: the reason
//	take WHO N [as=P]: TryAcquire; get WHO[:TAG] [N] [within=D] [as=P]: Acquire; charge WHO[:TAG] N
//	pause WHO [D] [tag=gold] [wait=D]: by a pod; resume WHO [tag=gold]
//	receipts F: of the last pause; newer: whether it changed what is on record; paused WHO [TAG]: how long, without the stagger
//	override FIELD=1; override: it ends; overridden F; quota TAG [FIELD=1]; forgive; clearfile: and its limit
//	filed WHO: the limit of the file that the pod knows to be in force
//
// While a scenario goes on, the shares of all pods that go by the store add up to the whole at most. Unless its total changes, no tag
// draws more in any time than that allows: some intervals' worth, its burst and a call. Neither a tag nor the pool has more calls in flight
// than slots. Unless the limit or the store changes, tokens that the store issues one by one are a spacing apart, and no period of a hard
// limit has more than its Max.
package pools
