// Package pools plays scenarios of pools: real members and limiters on one store, in virtual time. The text of a scenario is that of package
// scenario. WHO are pods by name, separated by commas, or all that have not left: all, or all-a-b without some. N are tokens, F fields in any
// case and with dots, D a time. Words in [] are optional.
//
// Commands without a result:
//
//	limit [FIELD=1]: of throttle.Limit, for pods from now on; indented lines are its quotas
//	pod NAME [id=NAME] [FIELD=1] [slots=10] [callers=2] [draw=5] [policy=even] [onloss=stop] [lease=3s] [tag=gold] [news] [cut] [file=100]: it joins;
//	  callers draw as fast as they can, N tokens at a time; with news it hears those of others
//	pods 4 ...: p0 to p3; join NAME: a Member without a limiter
//	callers NAME WHO[:TAG] N [draw=1,60] [every=10ms] [try] [within=1s] [hold=5ms..9ms] [service=S]: more callers at each
//	  pod; TAG with * is another one for each caller
//	arrivals NAME WHO[:TAG] RATE ..: calls that come by themselves, RATE tokens per second at each pod
//	stop NAME: the callers of a pod or of that name; service S RATE [overloaded]: it accepts so many calls a second, and refuses the others
//	kill WHO: it is not heard of any more; leave WHO, leaves WHO: without waiting for the end of that
//	cut WHO, hang WHO, mend WHO, deaf WHO: it hears no news, and is not heard; slow WHO D: each request
//	file WHO 50: another limit in the settings file of a pod with file=
//	store forgets [skew=1h]; store copies: an older copy; store returns: to that; store unsure: it cannot
//	  tell a new pool from one that it has lost
//	settle P N, cancel P: permits; told WHO D REASON: RetryAfter
//
// Questions:
//
//	share WHO, ceiling WHO, granted WHO, inuse WHO, tokens WHO, syncs WHO, pushed WHO, cuts WHO, part WHO (of a backoff), inforce WHO: figures of
//	  pods. total FIGURE WHO: their sum; apart FIGURE WHO: the highest less the lowest; gain D FIGURE WHO: by how much each rises from now
//	  on; mark FIGURE WHO: to compare with; above FIGURE WHO: by how much each is above the mark
//	rate D NAME..: tokens per second from now on, of a name or of the callers of pods, or calls: NAME/accepted,
//	  NAME/refused; a+b is the sum
//	drawn NAME..: the same as numbers, from the beginning
//	most NAME: the most calls in flight of callers since the last look; fair NAME: what the pod with the least got since, of an even part
//	view WHO F: of consensus.View; status WHO F; throttled WHO: the reason
//	take WHO N [as=P]: TryAcquire; get WHO[:TAG] [N] [within=D] [as=P]: Acquire; charge WHO[:TAG] N
//	pause WHO [D] [tag=gold] [wait=D]: by a pod, or by operators: pause pool; resume WHO [tag=gold]
//	receipts F: of the last pause; newer: whether it changed what is on record; paused WHO [TAG]: how long, without the stagger
//	override FIELD=1; override: it ends; overridden F; quota TAG [FIELD=1]; forgive; clearfile: and its limit
//	filed WHO: the limit of the file that a pod with a file knows to be in force
//
// While a scenario goes on, the shares of all pods that go by the store add up to the whole at most, and no tag draws more in any time than its
// total allows: some intervals' worth, its burst and a call, unless the total changes.
package pools
