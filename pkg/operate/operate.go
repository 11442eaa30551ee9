package operate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/poolview"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Pool is one pool as an operator sees it. Its methods change no field.
type Pool struct {
	// Store is the store of the pool, such as the result of numathrottle.OpenStore. The caller closes it.
	Store driver.Store
	// Name is the pool's name, such as that of a vertex: namespace/pipeline/vertex.
	Name string
	// Quotas are the configured quotas of the pods. Pods report hashes of tags: without Quotas only changed tags have names, and
	// budgets have no amounts. Optional.
	Quotas throttle.Quotas
}

// An EmptyPoolError refuses a change of a pool without pods: it would have no effect now, and surprise pods that join later.
type EmptyPoolError struct{ Pool string }

func (e *EmptyPoolError) Error() string {
	return fmt.Sprintf("nobody is in the pool %.300q: there is no limit to change", e.Pool)
}

// Pools lists the pools of a store, including pools without pods. The error wraps [driver.ErrNoList] if the store keeps no list.
func Pools(ctx context.Context, s driver.Store) ([]string, error) {
	lister, ok := s.(driver.Lister)
	if !ok {
		return nil, driver.ErrNoList
	}
	names, err := lister.Pools(ctx)
	return slices.DeleteFunc(names, func(name string) bool { return name == poolview.Scratch }), err
}

// Overview reads the record of the pool, as of the newest sync.
func (p *Pool) Overview(ctx context.Context) (Overview, error) {
	return protocol.LoadOverview(ctx, p.Store, p.Name)
}

// Limit is Overview that fails for an override that this release cannot read.
func (p *Pool) Limit(ctx context.Context) (Overview, error) {
	o, err := p.Overview(ctx)
	if err == nil && slices.Contains(o.Unreadable, poolview.LimitDocument) {
		_, err = protocol.LoadOverride(ctx, p.Store, p.Name)
	}
	return o, err
}

// SetLimit replaces the override of the pool and returns it as saved: Per defaults to the configured period. Max is at least 1. A pool
// without pods is an *EmptyPoolError.
func (p *Pool) SetLimit(ctx context.Context, o Override) (saved Override, err error) {
	if o.Max < 1 {
		return saved, &driver.RequestError{Field: "Max", Value: "below 1", Allowed: "1 to 1000000000"}
	}
	if err := p.inhabited(ctx); err != nil {
		return saved, err
	}
	if err := protocol.SaveOverride(ctx, p.Store, p.Name, o); err != nil {
		return saved, err
	}
	return protocol.LoadOverride(ctx, p.Store, p.Name)
}

// ClearLimit ends the override, even one that this release cannot read. It returns the pool as it was before.
func (p *Pool) ClearLimit(ctx context.Context) (before Overview, err error) {
	if before, err = p.Overview(ctx); err != nil {
		return before, err
	}
	return before, protocol.ClearOverride(ctx, p.Store, p.Name)
}

// ClearFile ends what a changed settings file has set in the pool, even if this release cannot read it, and forgets which files the pool
// has had: pods go by the files with which they have started, until one changes again. It returns that file as NAME@HASH; empty: there was
// none. It blocks until the store has answered; ctx bounds it.
//
// Errors: one that wraps driver.ErrNoPool; *driver.ConflictError when others keep changing the document at the same time; those of the store.
func (p *Pool) ClearFile(ctx context.Context) (before string, err error) {
	f, err := protocol.ClearFile(ctx, p.Store, p.Name)
	if f.Hash == "" {
		return "", err
	}
	return f.String(), err
}

// ForgiveDebt clears what the pods of the pool owe because calls used more than they drew. Each pod forgets it with its next sync; later
// debt counts, and what tags owe to the quotas of the pool stays. reason says why, in up to 128 bytes of text, and by names the author, in up
// to 64. It blocks until the store has answered; ctx bounds it.
//
// Errors: *EmptyPoolError for a pool without pods; *driver.RequestError for an invalid reason or name; one that wraps driver.ErrNoPool;
// *driver.ConflictError when others keep changing the document at the same time; those of the store.
func (p *Pool) ForgiveDebt(ctx context.Context, reason, by string) error {
	if err := p.inhabited(ctx); err != nil {
		return err
	}
	return protocol.ForgiveDebt(ctx, p.Store, p.Name, reason, by)
}

func (p *Pool) inhabited(ctx context.Context) error {
	o, err := p.Overview(ctx)
	lives := func(row OverviewRow) bool { return !row.Gone() } // not only the row of a pod that was killed
	if err == nil && !slices.ContainsFunc(o.Processors, lives) {
		return &EmptyPoolError{p.Name}
	}
	return err
}

// Pauses lists the pauses in force by the local clock. It fails for a document that this release cannot read.
func (p *Pool) Pauses(ctx context.Context) ([]throttle.Paused, error) {
	all, err := protocol.LoadPauses(ctx, p.Store, p.Name)
	return poolview.PausesAt(all, time.Now()), err
}

// Pause pauses the pool, or one tag of it. pause.Until counts by the local clock; the zero Time lasts until Resume. Of two pauses the one
// that ends later counts. Pods stop when they are notified, or with their next sync. In a pool without pods it starts when a pod joins. It
// blocks until the store has answered; ctx bounds it. A pause of the whole pool always has room, and replaces a document of pauses that this
// release cannot read.
//
// Errors: *throttle.PauseError for an invalid pause, or when there is no room for one more tag; one that wraps driver.ErrNoPool for a pool
// that no pod has been in; *driver.ConflictError when others keep changing it at the same time; those of the store.
func (p *Pool) Pause(ctx context.Context, pause throttle.Paused) error {
	return protocol.SavePause(ctx, p.Store, p.Name, pause)
}

// Resume ends the pause of one tag, or of the whole pool for the tag "". It returns the ended pause, if there was one. For the whole pool it
// also ends all pauses if this release cannot read them.
func (p *Pool) Resume(ctx context.Context, tag string) (ended []throttle.Paused, err error) {
	o, err := p.Overview(ctx)
	if err != nil {
		return nil, err
	}
	if err := protocol.ClearPause(ctx, p.Store, p.Name, tag); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(poolview.PausesAt(o.Pauses, time.Now()), func(o throttle.Paused) bool { return o.Tag != tag }), nil
}
