package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An Action is a wrapper's answer to a denied message. D is a message as the user's functions see it, R an answer to the platform. The zero
// Action waits.
type Action[D, R any] struct {
	Name   string
	Answer func(ctx context.Context, keys []string, d D, denied *Denied) R // nil where it waits
	Faults []string                                                        // in what the user gave for it
}

// Waits reports whether the Action is to go on waiting.
func (a Action[D, R]) Waits() bool { return a.Name == "" }

// String returns the name of the Action.
func (a Action[D, R]) String() string {
	if a.Waits() {
		return "Wait"
	}
	return a.Name
}

// Settings holds the options of a wrapper. Cost and Tag get a message and its keys.
type Settings[D, R any] struct {
	Cost            func(keys []string, d D) int    // nil: 1
	Tag             func(keys []string, d D) string // nil: none
	MaxWait, Budget time.Duration                   // of a message, and of its batch; 0: no bound
	OnDenied        Action[D, R]
	ExemptDropped   bool
	Log             *slog.Logger // nil: slog.Default()
}

// Check returns an error with a line for each fault in the settings, or nil. Each line begins with the name of the package. The argument
// bounds names the options that bound a wait, actions those that end it, and faults holds the wrapper's own findings.
func (s *Settings[D, R]) Check(pkg, bounds, actions string, faults ...string) error {
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if s.MaxWait < 0 {
		bad("WithMaxWait is %s, allowed: 0 (no limit) or more", s.MaxWait)
	}
	if s.Budget < 0 {
		bad("WithBatchBudget is %s, allowed: 0 (no limit) or more", s.Budget)
	}
	faults = append(faults, s.OnDenied.Faults...)
	switch bounded := s.MaxWait != 0 || s.Budget != 0; {
	case bounded && s.OnDenied.Waits():
		bad("OnDenied is Wait, allowed with %s: %s", bounds, actions)
	case !bounded && !s.OnDenied.Waits():
		bad("OnDenied is %s, allowed without %s: Wait", s.OnDenied, bounds)
	}
	errs := make([]error, len(faults))
	for i, fault := range faults {
		errs[i] = fmt.Errorf("%s: %s", pkg, fault)
	}
	return errors.Join(errs...)
}

// Must panics with the error of a Check, a mistake in the program that is found when it starts.
func Must(err error) {
	if err != nil {
		panic(err) //nolint:forbidigo // as above
	}
}

// MustCountTokens panics if a limiter counts calls in flight. It is for wrappers that do not know when a call ends: they would give no slot
// back, and soon wait for ever.
func MustCountTokens(pkg string, l throttle.Limiter) {
	if name, ok := hook.CountsCalls(l); ok {
		Must(fmt.Errorf("%s: the limiter counts calls in flight (%q), allowed: limits of tokens: "+
			"this wrapper does not know when a call has ended; draw slots in the handler, around the call", pkg, name))
	}
}

// Priced reports whether an option needs to see a message before it draws. Otherwise each draws one token, without a tag.
func (s *Settings[D, R]) Priced() bool { return s.Cost != nil || s.Tag != nil }

// Price returns the cost of a message and its tag.
func (s *Settings[D, R]) Price(keys []string, d D) (tag string, cost int) {
	cost = 1
	if s.Cost != nil {
		cost = s.Cost(keys, d)
	}
	if s.Tag != nil {
		tag = s.Tag(keys, d)
	}
	return tag, cost
}

// A Wrapper is the part of a handler's wrapper that draws.
type Wrapper[D, R any] struct {
	Settings[D, R]

	Admitter  Admitter
	Abandoner Abandoner
	Pace      Pace // of a handler of batches
}

// Wrapper returns a Wrapper that draws from l by these settings.
func (s Settings[D, R]) Wrapper(l throttle.Limiter) *Wrapper[D, R] {
	return &Wrapper[D, R]{
		Settings:  s,
		Admitter:  Admitter{Limiter: l, MaxWait: s.MaxWait, Budget: s.Budget, Log: s.Log},
		Abandoner: Abandoner{Log: s.Log},
	}
}

// Ahead returns how many messages of a batch may be admitted before the handler takes them. It is 0 if messages may have tags or cost other
// than a token.
func (w *Wrapper[D, R]) Ahead() int {
	if w.Priced() {
		return 0
	}
	return w.Admitter.Ahead(&w.Pace)
}

// Deny returns OnDenied's answer to a denied message. If OnDenied waits, it returns that of otherwise, as no wait helps. For any other err
// there is no answer, and ok is false.
func (w *Wrapper[D, R]) Deny(ctx context.Context, err error, keys []string, d D, otherwise Action[D, R]) (answer R, ok bool) {
	denied, ok := errors.AsType[*Denied](err)
	if !ok {
		return answer, false
	}
	action := w.OnDenied
	if action.Waits() {
		action = otherwise
	}
	return action.Answer(ctx, keys, d, denied), true
}

// NackOptions has the platform deliver a message again after RetryAfter, with why as the reason.
func (d *Denied) NackOptions(why string) *mapsdk.NackOptions {
	delay := uint64((d.RetryAfter() + time.Millisecond - 1) / time.Millisecond)
	return &mapsdk.NackOptions{Delay: &delay, Reason: &why}
}

// IsForwardTag reports whether a message may be forwarded under a tag: one that has no meaning for numaflow-go. Drops and nacks have the
// same tags in all kinds of handlers.
func IsForwardTag(tag string) bool { return tag != "" && tag != mapsdk.DROP && tag != mapsdk.NACK }

// ForwardFaults lists the faults of the tags of Forward.
func ForwardFaults(tags []string) []string {
	if len(tags) > 0 && !slices.ContainsFunc(tags, func(tag string) bool { return !IsForwardTag(tag) }) {
		return nil
	}
	return []string{fmt.Sprintf("tags of Forward are %q, allowed: one or more, none empty, %q or %q", tags, mapsdk.DROP, mapsdk.NACK)}
}

// DenyFuncFaults lists the faults of a DenyFunc's function.
func DenyFuncFaults(isNil bool) []string {
	if !isNil {
		return nil
	}
	return []string{"function of DenyFunc is nil, allowed: a function"}
}

// IsDrop decides as the platform does, which takes a message for a drop if any of its tags says so.
func IsDrop(tags []string) bool { return slices.Contains(tags, mapsdk.DROP) }

// OnlyDrops reports whether the platform forwards nothing of a result.
func OnlyDrops[M interface{ Tags() []string }](result []M) bool {
	for i := range result {
		if !IsDrop(result[i].Tags()) {
			return false
		}
	}
	return len(result) > 0
}
