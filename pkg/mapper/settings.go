package mapper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// settings is what the options say.
type settings struct {
	cost          func(keys []string, d mapsdk.Datum) int    // nil: 1
	tag           func(keys []string, d mapsdk.Datum) string // nil: none
	maxWait       time.Duration                              // 0: no bound
	onDenied      Action
	exemptDropped bool
	log           *slog.Logger // nil: slog.Default()
	perOutput     bool
	direct        bool
}

// Check returns everything that is wrong with the options for Wrap and WrapBatch,
// in one error, which these would panic with; nil for nothing. It is for options
// that come from a configuration.
func Check(opts ...Option) error {
	s := newSettings(asStreamOptions(opts))
	return s.validate()
}

// CheckStream is Check for WrapStream.
func CheckStream(opts ...StreamOption) error {
	s := newSettings(opts)
	return s.validate()
}

func asStreamOptions(opts []Option) []StreamOption {
	all := make([]StreamOption, len(opts))
	for i, opt := range opts {
		all[i] = opt
	}
	return all
}

func newSettings(opts []StreamOption) settings {
	var s settings
	for _, opt := range opts {
		if opt != nil {
			opt.applyStream(&s)
		}
	}
	return s
}

func (s *settings) validate() error {
	var faults []error
	bad := func(field string, value any, allowed string) {
		faults = append(faults, fmt.Errorf("mapper: %s is %v, allowed: %s", field, value, allowed))
	}
	if s.onDenied.fault != nil {
		faults = append(faults, s.onDenied.fault)
	}
	switch {
	case s.maxWait < 0:
		bad("WithMaxWait", s.maxWait, "0 (no bound) or more")
	case s.perOutput && s.maxWait > 0:
		bad("WithMaxWait", s.maxWait, "0 with PerOutput, for an answer that has begun cannot be taken back")
	case s.maxWait > 0 && s.onDenied.waits():
		bad("WithMaxWait", s.maxWait, "0 without an OnDenied that ends the wait")
	}
	switch {
	case s.onDenied.waits():
	case s.perOutput:
		bad("OnDenied", s.onDenied.name, "Wait with PerOutput, for an answer that has begun cannot be taken back")
	case s.maxWait == 0:
		bad("OnDenied", s.onDenied.name, "Wait without a WithMaxWait above 0")
	}
	if s.direct && s.perOutput {
		bad("Direct", "set", "not with PerOutput, which has to see the outputs")
	}
	if s.direct && s.exemptDropped {
		bad("Direct", "set", "not with ExemptDropped, which has to see the outputs")
	}
	return errors.Join(faults...)
}

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

// deny returns the answer that the user chose for a message that was denied; it
// tells by false that err is something else, for which there is no answer.
func (t *throttled) deny(ctx context.Context, err error, keys []string, d mapsdk.Datum) (mapsdk.Messages, bool) {
	denied, ok := errors.AsType[*admission.Denied](err)
	if !ok {
		return nil, false
	}
	return t.onDenied.answer(ctx, keys, d, denied), true
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
