package storetest

import (
	"context"
	"reflect"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// bad are values that a call must refuse, by the field that has them. A prefix names the list that holds the field.
type bad map[string][]any

// refused requires that a call is refused for each of the bad values alone.
func refused[T any](p *pool, good T, values bad, call func(T) error) {
	p.Helper()
	for name, of := range values {
		for _, v := range of {
			arg := good
			field := reflect.ValueOf(&arg).Elem().FieldByName(name[strings.LastIndexByte(name, '.')+1:])
			field.Set(reflect.ValueOf(v).Convert(field.Type()))
			requireRequestError(p, call(arg), name, arg)
		}
	}
}

// trySync sends a request that the store may refuse.
func (p *pool) trySync(req driver.Request) error {
	_, err := p.store.Sync(p.Context(), req)
	return err
}

func requireRequestError(p *pool, err error, field string, what any) {
	p.Helper()
	var bad *driver.RequestError
	require.ErrorAs(p, err, &bad, "%+v", what)
	require.Equal(p, field, bad.Field, "%v", err)
	require.NotEmpty(p, bad.Allowed)
}

var (
	badNames  = []any{"", strings.Repeat("n", 257), "a\x00b"}
	badShares = []any{-1, whole + 1}
)

func malformed(p *pool) {
	a, _ := p.open()
	before := a.sync(one(0, half))
	refused(p, a.clone().request(one(half, whole)), bad{
		"Pool": badNames, "ID": badNames, "Incarnation": badNames[:2], "Seq": {a.lastSeq},
		"Lease":    {0, -time.Second, driver.MaxLease + time.Millisecond, p.lease + time.Microsecond},
		"Outlasts": {-1, wire.MaxOutlasts + 1}, "InUse": badShares, "Wanted": badShares, "Demand": badShares, "PoolSize": {-1, 1_000_001},
		"Note": {strings.Repeat("n", 129), "a\x00"},
	}, p.trySync)
	refused(p, p.proc("b").request(one(0, 0)), bad{"Seq": {0}}, p.trySync)
	refused(p, driver.Leave{Pool: p.name, ID: "a", Incarnation: a.incarnation, Seq: 9}, bad{
		"Pool": {""}, "ID": {""}, "Incarnation": {""}, "Seq": {0},
	}, func(l driver.Leave) error { return p.store.Leave(p.Context(), l) })
	require.Equal(p, before.Revision+1, a.sync(one(half, half)).Revision)
}

func malformedDeath(p *pool) {
	a := p.proc("a")
	refused(p, a.request(one(0, half)), bad{"Dead": {
		[]driver.Death{{}},
		[]driver.Death{{Incarnation: a.incarnation}},
		[]driver.Death{{Incarnation: "b"}, {Incarnation: "b"}},
		[]driver.Death{{Incarnation: "a\x00b"}},
		make([]driver.Death, wire.MaxDead+1),
		[]driver.Death{{Incarnation: "b", Unanswered: []driver.Ticket{{Seq: 2}, {Seq: 1}}}},
		[]driver.Death{{Incarnation: "b", Last: driver.Ticket{Seq: 3}, Unanswered: []driver.Ticket{{Seq: 3}}}},
	}}, p.trySync)
}

func malformedDraws(p *pool) {
	a, _ := p.open()
	before := a.sync(one(0, half))
	req := a.clone().request(one(half, whole))
	refused(p, req, bad{
		"Draws": {make([]driver.Draw, wire.MaxDraws+1), []driver.Draw{draw(7, 1), draw(7, 1)}}, "Busy": {strings.Repeat("b", wire.MaxBusyBytes+1)},
	}, p.trySync)
	try := func(d driver.Draw) error {
		req.Draws = []driver.Draw{d}
		return p.trySync(req)
	}
	refused(p, draw(7, 1), bad{
		"Draws.Version": {uint64(wire.MaxVersion + 1)}, "Draws.Total": {-1, wire.MaxTokens + 1},
		"Draws.Per":   {wire.MinPer - 1, time.Second + time.Nanosecond, wire.MaxSpacing + time.Second},
		"Draws.Burst": {-1}, "Draws.Ask": {wire.MaxTokens + 1}, "Draws.Ahead": {-1, wire.MaxReach + 1}, "Draws.Back": {-1},
		"Draws.Owed": {-1}, "Draws.Budgets": {make([]driver.BudgetDraw, wire.MaxBudgets+1)},
	}, try)
	refused(p, driver.BudgetDraw{End: 5}, bad{"Draws.Budgets.Amount": {-1}, "Draws.Budgets.Start": {5}, "Draws.Budgets.Seen": {-1}},
		func(b driver.BudgetDraw) error {
			d := draw(7, 1)
			d.Budgets = []driver.BudgetDraw{b}
			return try(d)
		})
	require.Equal(p, before.Revision+1, a.sync(one(half, half)).Revision)
}

func malformedReserve(p *pool) {
	p.open()
	good := driver.Reserve{Pool: p.name, Count: 1, Spacing: time.Second, Lease: p.lease}
	reserve := func(ctx context.Context, req driver.Reserve) error {
		_, err := p.store.Reserve(ctx, req)
		return err
	}
	refused(p, good, bad{
		"Pool": {""}, "Count": {-1, wire.MaxSlots + 1}, "Spacing": {0, wire.MaxSpacing + 1}, "Ahead": {-1, wire.MaxAhead + 1},
		"Revision": {uint64(1 << 63)}, "Lease": {0}, "Return": {-1}, "Unused": {wire.MaxSlots + 1},
	}, func(req driver.Reserve) error { return reserve(p.Context(), req) })
	req := p.proc("a").request(one(0, 0), loaded("limit", 1))
	refused(p, req, bad{"Spacing": {wire.MaxSpacing + 1}, "Strict": {true}}, p.trySync)
	refused(p, req, bad{"SpacingBy": {"limit"}}, p.trySync) // it has no spacing
	req.Spacing = wire.MinSpacing
	refused(p, req, bad{"SpacingBy": {"other"}}, p.trySync)
	req.Documents[0].Version = 0
	refused(p, req, bad{"SpacingBy": {"limit"}}, p.trySync)
	canceled, cancel := context.WithCancel(p.Context())
	cancel()
	require.ErrorIs(p, reserve(canceled, good), context.Canceled)
}

func malformedDocuments(p *pool) {
	a, _ := p.open()
	before := a.exchange(change("limit", 0, 5, "there"))
	req := a.clone().request(one(0, 0))
	save := func(d driver.DocumentReport) error {
		_, err := p.store.Save(p.Context(), p.name, d)
		return err
	}
	report := func(d driver.DocumentReport) error {
		req.Documents = []driver.DocumentReport{d}
		return p.trySync(req)
	}
	good := change("limit", 5, 6, "x")
	for _, call := range []func(driver.DocumentReport) error{report, save} {
		refused(p, good, bad{
			"Name": {"", "Limit", "a\x00", strings.Repeat("n", 33)}, "Body": {strings.Repeat("x", wire.MaxDocumentBytes+1)},
			"Version": {0, uint64(1 << 63)}, "Base": {7},
		}, call)
	}
	refused(p, good, bad{"Body": {""}, "Base": {6}}, save)
	refused(p, req, bad{"Documents": {make([]driver.DocumentReport, wire.MaxDocuments+1)}}, p.trySync)
	req.Documents = []driver.DocumentReport{loaded("limit", 5), loaded("limit", 5)}
	requireRequestError(p, p.trySync(req), "Name", req)
	type named struct{ Pool string }
	refused(p, named{}, bad{"Pool": badNames}, func(n named) error {
		_, err := p.store.Save(p.Context(), n.Pool, good)
		return err
	})
	refused(p, named{}, bad{"Pool": badNames}, func(n named) error {
		_, _, err := p.store.Load(p.Context(), n.Pool)
		return err
	})
	ans := a.exchange()
	require.Equal(p, before.Revision+1, ans.Revision)
	p.requireDocuments(ans.Documents, doc("limit", 5, "there"))
}

func malformedNews(p *pool) {
	s := p.pusher()
	for _, c := range []struct {
		field, pool string
		news        []byte
	}{
		{"Pool", "", []byte("x")},
		{"Pool", "a\x00b", []byte("x")},
		{"News", p.name, nil},
		{"News", p.name, make([]byte, wire.MaxNewsBytes+1)},
	} {
		requireRequestError(p, s.Push(p.Context(), c.pool, c.news), c.field, c)
	}
	_, err := s.Watch(p.Context(), "", func([]byte) {})
	requireRequestError(p, err, "Pool", "")
}
