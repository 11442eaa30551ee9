// Package operate shows a pool to operators and changes it from outside, without being one of its pods: its limit, pauses, quotas,
// debt, and what is spent of budgets. The command numathrottle and its console are built on it.
//
// A change is kept in the pool's record. Each pod goes by it from its next sync on, within about a second; a pause also reaches
// them by a push, where the store has one. The record does not tell which pods have taken a change in.
//
// All functions may be used by any number of goroutines at once. Those that take a context block until the store has answered; the
// context bounds them. Errors of all of them: one that wraps consensus.ErrNoPool for a pool without a record; those of the store.
// Errors of all changes: *consensus.RequestError, or *throttle.PauseError of a pause, for what is out of bounds or what the
// pool does not allow; *consensus.ConflictError when others keep changing the same thing at the same time.
package operate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/why"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Pool is one pool as an operator sees it. Its methods change no field.
type Pool struct {
	// Store is where the pool is, such as that of numathrottle.OpenStore. It stays the caller's.
	Store consensus.Store
	// Name is the pool's name, such as that of a vertex: namespace/pipeline/vertex.
	Name string
	// Quotas are what the pods are configured with, as far as the operator knows. Pods tell hashes of tags, and no names: without
	// Quotas only changed tags have names, and no budget has an amount.
	Quotas throttle.Quotas
}

// An EmptyPoolError is a change that would do nothing, because nobody is in the pool, and surprise whoever joins later.
type EmptyPoolError struct{ Pool string }

func (e *EmptyPoolError) Error() string {
	return fmt.Sprintf("nobody is in the pool %.300q: there is no limit to change", e.Pool)
}

// Pools returns the names of the pools of a store, also those that nobody is in any more. The error wraps
// driver.ErrNoList for a store that cannot tell.
func Pools(ctx context.Context, s consensus.Store) ([]string, error) {
	lister, ok := s.(driver.Lister)
	if !ok {
		return nil, driver.ErrNoList
	}
	return lister.Pools(ctx)
}

// Overview returns what the record of the pool shows, as of the newest sync.
func (p *Pool) Overview(ctx context.Context) (consensus.Overview, error) {
	return consensus.LoadOverview(ctx, p.Store, p.Name)
}

// LimitDocument is the name of an override among Overview.Unreadable.
const LimitDocument = "limit"

// Limit is Overview, with an error where the override is one that this release cannot read.
func (p *Pool) Limit(ctx context.Context) (consensus.Overview, error) {
	o, err := p.Overview(ctx)
	if err == nil && slices.Contains(o.Unreadable, LimitDocument) {
		_, err = consensus.LoadOverride(ctx, p.Store, p.Name)
	}
	return o, err
}

// SetLimit makes o the limit of the pool, in place of any other override, and returns it as it was saved: with the configured period if
// it names none. o.Max is at least 1. Errors, beside those of the package: *EmptyPoolError.
func (p *Pool) SetLimit(ctx context.Context, o consensus.Override) (saved consensus.Override, err error) {
	if o.Max < 1 {
		return saved, &consensus.RequestError{Field: "Max", Value: "below 1", Allowed: "1 to 1000000000"}
	}
	if err := p.inhabited(ctx); err != nil {
		return saved, err
	}
	if err := consensus.SaveOverride(ctx, p.Store, p.Name, o); err != nil {
		return saved, err
	}
	return consensus.LoadOverride(ctx, p.Store, p.Name)
}

// ClearLimit ends the override, also one that this release cannot read, and returns the pool as it was before.
func (p *Pool) ClearLimit(ctx context.Context) (before consensus.Overview, err error) {
	if before, err = p.Overview(ctx); err != nil {
		return before, err
	}
	return before, consensus.ClearOverride(ctx, p.Store, p.Name)
}

// ForgiveDebt ends what the pods owe; see consensus.ForgiveDebt. Errors, beside those of the package: *EmptyPoolError.
func (p *Pool) ForgiveDebt(ctx context.Context, reason, by string) error {
	if err := p.inhabited(ctx); err != nil {
		return err
	}
	return consensus.ForgiveDebt(ctx, p.Store, p.Name, reason, by)
}

func (p *Pool) inhabited(ctx context.Context) error {
	o, err := p.Overview(ctx)
	if err == nil && len(o.Processors) == 0 {
		return &EmptyPoolError{p.Name}
	}
	return err
}

// Pauses returns what is paused now, by this machine's clock. The error is also one for a document that this release cannot read.
func (p *Pool) Pauses(ctx context.Context) ([]throttle.Paused, error) {
	all, err := consensus.LoadPauses(ctx, p.Store, p.Name)
	return PausesAt(all, time.Now()), err
}

// Pause pauses the pool, or one tag of it; see consensus.SavePause. A pause of a pool that nobody is in begins when a pod joins.
func (p *Pool) Pause(ctx context.Context, pause throttle.Paused) error {
	return consensus.SavePause(ctx, p.Store, p.Name, pause)
}

// Resume ends the pause of the pool, with an empty tag, or that of one tag, and returns what it has ended; nothing if it was not paused.
func (p *Pool) Resume(ctx context.Context, tag string) (ended []throttle.Paused, err error) {
	if ended, err = p.Pauses(ctx); err != nil {
		return nil, err
	}
	if err := consensus.ClearPause(ctx, p.Store, p.Name, tag); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ended, func(o throttle.Paused) bool { return o.Tag != tag }), nil
}

// PausesAt returns those of all pauses that last at now.
func PausesAt(all []throttle.Paused, now time.Time) (list []throttle.Paused) {
	for _, p := range all {
		if p.Until.IsZero() || p.Until.After(now) {
			list = append(list, p)
		}
	}
	return list
}

// LimitText is the limit in force in words, such as "300 per 1m" or "30 calls in flight"; empty: no pod tells one.
func LimitText(o *consensus.Overview) string {
	switch set := (consensus.Setting{Max: o.Max, Per: o.Per}); {
	case o.Max > 0 && o.Per == 0: // nobody tells a period
		return fmt.Sprintf("%d per configured period", o.Max)
	case o.Max > 0:
		return set.String()
	case o.Slots > 0:
		return (&consensus.Setting{Slots: o.Slots}).String()
	}
	return ""
}

// Configured is what a pod is configured with in words, such as "600 per 1m, hard"; unknown if it tells no limit that this release can read.
func Configured(row *consensus.OverviewRow) string {
	if row.Max == 0 && row.Slots == 0 {
		return "unknown"
	}
	return (&consensus.Setting{Max: row.Max, Per: row.Per, Hard: row.Hard, Slots: row.Slots}).String()
}

// Use is which part of the limit in force is used, and how many callers wait.
func Use(o *consensus.Overview) (part float64, waiting int) {
	for i := range o.Processors {
		part += UseOf(o, &o.Processors[i])
		waiting += o.Processors[i].Waiting
	}
	return part, waiting
}

// UseOf is which part of the limit in force one pod uses.
func UseOf(o *consensus.Overview, row *consensus.OverviewRow) float64 { return why.PartOf(o, row) }
