package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// save calls Save. What the store decides is no failed call.
func (p *pool) save(d driver.DocumentReport) (current driver.Version, err error) {
	p.Helper()
	err = p.call(func(ctx context.Context) (err error) {
		current, err = p.store.Save(ctx, p.name, d)
		return err
	})
	return current, err
}

func (p *pool) load() (docs []driver.Document, roster []driver.RosterRow, err error) {
	p.Helper()
	err = p.call(func(ctx context.Context) (err error) {
		docs, roster, err = p.store.Load(ctx, p.name)
		return err
	})
	return docs, roster, err
}

// operatorCases are about Load and Save.
var operatorCases = []testCase{
	{name: "a pool without a record has no documents, and saving makes none", run: noPool},
	{name: "a document is saved if nobody has changed it", run: saves},
	{name: "a saved document is told to all, and changes nothing else", run: savedIsReported},
	{name: "loading shows documents and live processors", run: loads},
	{name: "of many changes at once none is lost", run: manySaves},
	{name: "pools are listed, also those that nobody is in any more", run: listed},
	{name: "malformed documents are a RequestError and change nothing", run: malformedDocuments},
}

func noPool(p *pool) {
	for range 2 {
		_, err := p.save(change("limit", 0, 1, "x"))
		require.ErrorIs(p, err, driver.ErrNoPool)
		_, _, err = p.load()
		require.ErrorIs(p, err, driver.ErrNoPool)
	}
	ans := p.proc("a").sync(one(0, 0))
	require.Empty(p, ans.Documents)
	if !p.Memory && !p.KnowsNew {
		p.requireFrozen(ans, driver.FreezeNewRecord)
	}
}

func saves(p *pool) {
	p.open()
	save := func(base, v driver.Version, body string) {
		p.Helper()
		current, err := p.save(change("limit", base, v, body))
		require.NoError(p, err)
		require.Equal(p, v, current)
	}
	conflict := func(base, v driver.Version, body string, want driver.Version) {
		p.Helper()
		current, err := p.save(change("limit", base, v, body))
		var other *driver.ConflictError
		require.ErrorAs(p, err, &other)
		require.Equal(p, driver.ConflictError{Name: "limit", Base: base, Current: want}, *other)
		require.Equal(p, want, current)
	}
	conflict(1, 2, "of what is not there", 0)
	save(0, 5, "five")
	save(0, 5, "five") // the answer may have been lost
	conflict(0, 5, "another five", 5)
	conflict(0, 6, "six", 5)
	conflict(4, 6, "six", 5)
	save(5, 1<<53+1, "large")
	conflict(1<<53, 1<<53+2, "larger", 1<<53+1)
	save(1<<53+1, math.MaxInt64, "the largest")
	docs, _, err := p.load()
	require.NoError(p, err)
	p.requireDocuments(docs, doc("limit", math.MaxInt64, "the largest"))
}

func savedIsReported(p *pool) {
	a, b := p.open()
	a.share(0, half)
	before := a.sync(one(half, half))
	_, err := p.save(change("limit", 0, 5, "saved"))
	require.NoError(p, err)
	ans := a.sync(one(half, half))
	p.requireDocuments(ans.Documents, doc("limit", 5, "saved"))
	require.Equal(p, before.Revision+2, ans.Revision, "it is a change of the record")
	require.Equal(p, half, ans.Share)
	require.Equal(p, before.Epoch, ans.Epoch)
	require.Zero(p, ans.Frozen)
	p.requireDocuments(b.exchange().Documents, doc("limit", 5, "saved"))
	a.leave()
	b.leave()
	_, err = p.save(change("limit", 5, 6, "while nobody was there"))
	require.NoError(p, err)
	p.requireDocuments(p.proc("c").exchange(loaded("limit", 5)).Documents, doc("limit", 6, "while nobody was there"))
}

func loads(p *pool) {
	a, b := p.open()
	report := one(0, half)
	report.Note = "max 10"
	a.sync(report)
	left := p.proc("c")
	left.sync(one(0, 0))
	left.leave()
	before := a.sync(report)
	for range 2 {
		docs, roster, err := p.load()
		require.NoError(p, err)
		require.Empty(p, docs)
		require.Equal(p, []driver.RosterRow{
			{ID: "a", Claim: half, Demand: half, PoolSize: 1, Note: "max 10", Left: wire.Removal(p.lease)},
		}, roster, "it made the last step")
	}
	require.Equal(p, before.Revision+1, b.exchange(change("b", 0, 7, "two"), change("a", 0, 9, "one")).Revision, "loading changes nothing")
	other := *p
	other.store = p.New(p)
	docs, roster, err := other.load()
	require.NoError(p, err)
	p.requireDocuments(docs, doc("a", 9, "one"), doc("b", 7, "two"))
	require.Len(p, roster, 2)
	require.Zero(p, roster[1].Silent)
	// In short steps: on a busy machine one may be longer than what counts as time.
	silence := wire.Clamp(p.lease) / 2
	for range 100 {
		pause(silence / 4)
		answered := b.exchange().Roster
		_, roster, err = other.load()
		require.NoError(p, err)
		require.Len(p, roster, 2)
		require.Equal(p, answered, roster, "processors are shown the same silence")
		require.Zero(p, roster[1].Silent, "it made the last step")
		require.Equal(p, wire.Removal(p.lease), roster[0].Silent+roster[0].Left)
		if roster[0].Silent >= silence {
			break
		}
	}
	require.GreaterOrEqual(p, roster[0].Silent, silence, "a has said nothing meanwhile")
	docs[0].Body[0], roster[0].ID = 'X', "forged"
	docs, roster, err = other.load()
	require.NoError(p, err)
	p.requireDocuments(docs, doc("a", 9, "one"), doc("b", 7, "two"))
	require.Equal(p, "a", roster[0].ID)
}

// listed lists pools with names that may need an escape. A store need not be a driver.Lister.
func listed(p *pool) {
	lister, ok := p.store.(driver.Lister)
	if !ok {
		return
	}
	names := func() (found []string) {
		p.Helper()
		require.NoError(p, p.call(func(ctx context.Context) error {
			all, err := lister.Pools(ctx)
			require.IsIncreasing(p, append([]string{""}, all...))
			found = slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, p.name) })
			return err
		}))
		return found
	}
	require.Empty(p, names(), "nobody has been in it")
	p.open()
	others := []string{"/", "/a b", "/{x}*?[y]:pool:z", "/é=.>", "/\x01"}
	var want []string
	for _, o := range others {
		other := *p
		other.name = p.name + o
		want = append(want, other.name)
		a := other.proc("a")
		a.sync(one(0, 0))
		if o == "/a b" {
			a.leave()
		}
	}
	slices.Sort(want)
	require.Equal(p, want, slices.DeleteFunc(names(), func(name string) bool { return name == p.name }))
}

// manySaves lets operators and processors count in one document.
func manySaves(p *pool) {
	const writers, rounds = 8, 10
	p.open()
	var wg sync.WaitGroup
	failed := make(chan error, writers)
	for i := range writers {
		wg.Go(func() { failed <- p.count(rounds, i) })
	}
	wg.Wait()
	for range writers {
		require.NoError(p, <-failed)
	}
	docs, _, err := p.load()
	require.NoError(p, err)
	counted, _, _ := strings.Cut(string(docs[0].Body), " ")
	require.Equal(p, strconv.Itoa(writers*rounds), counted)
}

// count adds one to the number in a document so many times. It puts its own number behind: two changes that agree in the
// version, by one chance in 65,536, and in the body as well would be one.
func (p *pool) count(rounds, own int) error {
	for range rounds {
		for {
			docs, _, err := p.load()
			if err != nil {
				return err
			}
			var base driver.Version
			n := 0
			if len(docs) > 0 {
				base = docs[0].Version
				counted, _, _ := strings.Cut(string(docs[0].Body), " ")
				if n, err = strconv.Atoi(counted); err != nil {
					return err
				}
			}
			_, err = p.save(change("count", base, driver.NextVersion(base, uint16(nonce()>>8)), fmt.Sprint(n+1, " ", own)))
			if err == nil {
				break
			}
			if _, lost := errors.AsType[*driver.ConflictError](err); !lost {
				return err
			}
		}
	}
	return nil
}
