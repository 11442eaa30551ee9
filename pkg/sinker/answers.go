package sinker

import (
	"slices"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
)

// answers assembles one response for each message: the handler's if the handler took it, otherwise the wrapper's.
func (b *batch) answers(responses sinksdk.Responses) sinksdk.Responses {
	known := func(int) bool { return true }
	if !slices.EqualFunc(b.taken, responses, func(id string, r sinksdk.Response) bool { return id == r.ID }) {
		responses, known = b.match(responses)
	}
	for i, m := range b.drawn {
		if known(i) {
			m.permit.Settle(b.settle(m.datum, responses[i]))
		}
	}
	b.report()
	if len(b.answered) == 0 {
		return responses
	}
	return slices.Concat(responses, b.answered)
}

// match finds the response for each message that the handler took, and repairs faults. The platform takes none of a batch in which an ID is
// missing, duplicate or unknown. The result matched is in the order of taken; answered reports which responses are the handler's.
func (b *batch) match(responses sinksdk.Responses) (matched sinksdk.Responses, answered func(i int) bool) {
	place := make(map[string]int, len(b.taken))
	for i, id := range b.taken {
		place[id] = i
	}
	found := make([]sinksdk.Response, len(b.taken))
	known := make([]bool, len(b.taken))
	var unknown, duplicate, missing int
	for _, r := range responses {
		i, ok := place[r.ID]
		switch {
		case !ok:
			unknown++
		case known[i]:
			duplicate++
			if claim(r) < claim(found[i]) {
				found[i] = r
			}
		default:
			found[i], known[i] = r, true
		}
	}
	for i, id := range b.taken {
		if !known[i] {
			missing++
			found[i] = sinksdk.ResponseFailure(id, "the handler took this message and gave no response")
		}
	}
	if unknown+duplicate+missing > 0 {
		b.Abandoner.Logger().Error("the handler's responses do not match the batch: missing ones are answered with a failure, the others left out",
			"messages", len(b.taken), "missing", missing, "duplicate", duplicate, "unknown", unknown)
	}
	return found, func(i int) bool { return known[i] }
}

// claim orders responses by how much they claim. Of two that contradict each other the lower one loses nothing: a message that is delivered
// again is not lost. The cases are in numaflow-go's order, in which the first flag set counts.
func claim(r sinksdk.Response) int {
	switch {
	case r.Fallback:
		return claimsFallback
	case r.Success:
		return claimsSuccess
	case r.Serve:
		return claimsServe
	case r.OnSuccess:
		return claimsOnSuccess
	case r.Nack:
		return claimsNothing
	default:
		return claimsFailure
	}
}

const (
	claimsFailure = iota
	claimsNothing
	claimsFallback
	claimsOnSuccess
	claimsServe
	claimsSuccess
)

// report logs the answers that the wrapper gave in the handler's place, at most one line for each kind and batch.
func (b *batch) report() {
	if b.denied > 0 {
		if b.OnDenied.Name == actionDrop {
			b.Abandoner.Logger().Warn("throttled messages dropped: acknowledged, and never seen by the handler", "messages", b.denied)
		} else {
			b.Abandoner.Logger().Debug("throttled messages denied", "messages", b.denied, "action", b.OnDenied)
		}
	}
	if b.refused > 0 {
		b.Abandoner.Logger().Error("messages not handled, answered with a failure", "messages", b.refused, "error", b.refusal)
	}
	if b.untaken > 0 && b.parent.Err() == nil {
		b.Abandoner.Logger().Error("the handler returned before the end of the batch: the rest is answered with a failure",
			"messages", b.untaken, "taken", len(b.taken))
	}
}
