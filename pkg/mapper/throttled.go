package mapper

import (
	"context"
	"errors"
	"slices"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// throttled is what the three wrappers have in common.
type throttled struct {
	settings

	gate      admission.Gate
	abandoner admission.Abandoner
	pace      admission.Pace // of a batch
}

// newThrottled panics when the options are wrong.
func newThrottled(l throttle.Limiter, opts []StreamOption) *throttled {
	s := newSettings(opts)
	if err := s.validate(); err != nil {
		panic(err) //nolint:forbidigo // a mistake in the program, told when it starts
	}
	return &throttled{
		settings:  s,
		gate:      admission.Gate{Limiter: l, MaxWait: s.maxWait, Log: s.log},
		abandoner: admission.Abandoner{Log: s.log},
	}
}

// priced tells whether an option wants to see a message before it draws; otherwise it
// draws one token, without a tag.
func (t *throttled) priced() bool { return t.cost != nil || t.tag != nil }

// price returns what a message draws, and for which tag.
func (t *throttled) price(keys []string, d mapsdk.Datum) (tag string, cost int) {
	cost = 1
	if t.cost != nil {
		cost = t.cost(keys, d)
	}
	if t.tag != nil && cost > 0 {
		tag = t.tag(keys, d)
	}
	return tag, cost
}

// ahead is how many messages of a batch may be admitted before the handler takes them. Those that cost other than a
// token, or have tags, are not.
func (t *throttled) ahead() int {
	if t.priced() {
		return 0
	}
	return t.gate.Ahead(&t.pace)
}

// deny returns the answer that the user chose for a message that was denied, or a nack where waiting was chosen
// and no wait helps; it tells by false that err is something else, for which there is no answer.
func (t *throttled) deny(ctx context.Context, err error, keys []string, d mapsdk.Datum) (mapsdk.Messages, bool) {
	denied, ok := errors.AsType[*admission.Denied](err)
	if !ok {
		return nil, false
	}
	action := t.onDenied
	if action.waits() {
		action = Nack()
	}
	return action.answer(ctx, keys, d, denied), true
}

// onlyDrops tells whether the platform forwards nothing of a result.
func onlyDrops[M interface{ Tags() []string }](out []M) bool {
	for i := range out {
		if !isDrop(out[i].Tags()) {
			return false
		}
	}
	return len(out) > 0
}

// isDrop looks as the platform does, which takes a message for a drop if any of its
// tags says so. The tag is the same in all kinds of map.
func isDrop(tags []string) bool { return slices.Contains(tags, mapsdk.DROP) }
