package console

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/why"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
)

// mostListed is how many pools are read for the overview. Of others only the names are shown.
const mostListed = 200

// A glance is an overview of all pools at one moment.
type poll struct {
	Now     int64     `json:"now"`
	Failure string    `json:"failure"`
	Pools   []summary `json:"pools"`
}

// A summary is one pool in the overview.
type summary struct {
	Pool       string  `json:"pool"`
	Known      bool    `json:"known"` // false: it was not read, or there was no answer
	Limit      string  `json:"limit"`
	Use        float64 `json:"use"`
	Waiting    int     `json:"waiting"`
	Processors int     `json:"processors"`
	Paused     bool    `json:"paused"`
	Frozen     bool    `json:"frozen"`
	Override   bool    `json:"override"`
	Disagree   bool    `json:"disagree"`
	Silent     bool    `json:"silent"` // a pod of it is
	// Why and Level are as in a snapshot.
	Why   string    `json:"why"`
	Level why.Level `json:"level"`
}

func summaryOf(s *snapshot) summary {
	return summary{
		Pool: s.Pool, Known: true, Limit: s.Limit, Use: s.Use, Waiting: s.Waiting, Processors: len(s.Processors), Paused: len(s.Pauses) > 0,
		Frozen: s.Frozen > 0, Override: s.Override != nil, Disagree: s.Disagree != "",
		Silent: slices.ContainsFunc(s.Processors, func(p processor) bool { return p.Overdue }),
		Why:    s.Why, Level: s.Level,
	}
}

// A lister keeps the newest glance, for all viewers.
type lister struct {
	hub *hub

	mu     sync.Mutex
	newest poll
	asked  time.Time
}

// pools returns a glance that is at most three polling intervals old.
func (l *lister) pools(ctx context.Context) poll {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.asked) >= 3*l.hub.every || l.asked.IsZero() {
		l.newest, l.asked = l.look(ctx), time.Now()
	}
	return l.newest
}

// look reads the names, and the pools that no feed has, a few at a time.
func (l *lister) look(ctx context.Context) poll {
	g := poll{Now: time.Now().UnixMilli(), Pools: []summary{}}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	names, err := operate.Pools(ctx, l.hub.store)
	switch {
	case errors.Is(err, driver.ErrNoList):
		g.Failure = err.Error()
		return g
	case err != nil:
		g.Failure = why.StoreText(err.Error())
		return g
	}
	g.Pools = make([]summary, len(names))
	free := make(chan struct{}, 4)
	var wg sync.WaitGroup
	for i, name := range names {
		g.Pools[i].Pool = name
		if s := l.hub.recent(name); s != nil {
			g.Pools[i] = summaryOf(s)
			continue
		}
		if i >= mostListed {
			continue
		}
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			switch o, err := protocol.LoadOverview(ctx, l.hub.store, name); {
			case errors.Is(err, driver.ErrNoPool):
				g.Pools[i].Pool = "" // it was deleted in the meantime
			case err == nil:
				s := newSnapshot(&o, time.Now())
				g.Pools[i] = summaryOf(&s)
			}
		})
	}
	wg.Wait()
	g.Pools = slices.DeleteFunc(g.Pools, func(s summary) bool { return s.Pool == "" })
	sortByState(g.Pools)
	return g
}

// sortByState sorts the pools that need attention first.
func sortByState(pools []summary) {
	slices.SortFunc(pools, func(a, b summary) int {
		return cmp.Or(cmp.Compare(a.Level.Rank(), b.Level.Rank()), cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Pool, b.Pool))
	})
}
