// Package pools plays scenarios of pools: real members and limiters on one store, in virtual time. The text of a scenario is that of package
// scenario. WHO are pods by name, separated by commas, or all that have not left: all, or all-a-b without some. N are tokens, F fields in any
// case and with dots, D a time. Words in [] are optional.
//
// Commands without a result:
//
//	limit [FIELD=1]: of throttle.Limit, for pods from now on; indented lines are its quotas
//	pod NAME [id=NAME] [FIELD=1] [slots=10] [callers=2] [draw=5] [policy=even] [onloss=stop] [lease=3s] [tag=gold] [news] [cut]: it joins;
//	  callers draw as fast as they can, N tokens at a time; with news it hears those of others
//	pods 4 ...: p0 to p3; join NAME: a Member without a limiter
//	callers NAME WHO[:TAG] N [draw=5] [every=10ms] [try] [hold=500ms]: more callers; stop NAME: those of a pod or of that name
//	kill WHO: it is not heard of any more; leave WHO, leaves WHO: without waiting for the end of that
//	cut WHO, hang WHO, mend WHO, deaf WHO, hears WHO; slow WHO D: each request; saves WHO D: each one to save
//	store forgets [skew=1h]; store copies: an older copy; store returns: to that
//	settle P N, cancel P: permits; told WHO D REASON: RetryAfter
//
// Questions:
//
//	share WHO, ceiling WHO, granted WHO, inuse WHO, tokens WHO, syncs WHO, pushed WHO: figures of pods. total FIGURE WHO: their sum; apart
//	  FIGURE WHO: the highest less the lowest; gain D FIGURE WHO: by how much each rises from now on
//	rate D WHO WHO..: tokens per second from now on, of all callers of these pods, or of callers of a name
//	most NAME: the most calls in flight of callers since the last look; fair NAME: what the pod with the least got since, of an even part
//	view WHO F: of consensus.View; status WHO F; throttled WHO: the reason
//	take WHO N [as=P]: TryAcquire; get WHO[:TAG] [N] [within=D] [as=P]: Acquire; charge WHO[:TAG] N
//	pause WHO [D] [tag=gold] [wait=D]: by a pod, or by operators: pause pool; resume WHO [tag=gold]
//	receipts F: of the last pause; newer: whether it changed what is on record; paused WHO [TAG]: how long, without the stagger
//	override FIELD=1; override: it ends; overridden F; quota TAG [FIELD=1]; forgive
//
// While a scenario goes on, the shares of all pods that go by the store add up to the whole at most.
package pools
