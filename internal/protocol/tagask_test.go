package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// askAt is when the accounts below ask, 2 s apart.
const (
	askAt    = 100 * sec
	askEvery = 2 * sec
)

// anAccount returns the account of a tag in use: by default with a total of 100 tokens per second and a burst of 10.
func anAccount(but func(a *tagAccount)) *tagAccount {
	a := &tagAccount{active: askAt, quota: limit.Quota{Total: 100}}
	but(a)
	a.quota = a.quota.WithDefaults(sec)
	return a
}

// ofBudget gives an account a budget with so many tokens left, and no total.
func ofBudget(a *tagAccount, left int64, then limit.Then) {
	a.quota = limit.Quota{Budgets: []limit.Budget{{Amount: 1000, Per: limit.PeriodDay, Then: then}}}
	a.budgets[0] = tagBudget{start: 1, end: 2, amount: 1000, seen: 600, own: 400 - left}
	a.budgets[1] = tagBudget{start: 1, end: 2} // the quota has no such budget any more
}

// An account asks for what the tag will use in the next interval and a quarter of another, less what it has, within all that bounds its use.
func TestHowMuchATagAsksFor(t *testing.T) {
	for name, c := range map[string]struct {
		but  func(a *tagAccount)
		live int
		want int64
	}{
		"its demand":                        {func(a *tagAccount) { a.demand = 40 }, 1, 100},
		"and who waits for the limit":       {func(a *tagAccount) { a.demand, a.Waiting = 40, 7 }, 1, 107},
		"less what is in hand":              {func(a *tagAccount) { a.demand, a.InHand = 40, 30 }, 1, 70},
		"or promised":                       {func(a *tagAccount) { a.demand, a.InHand, a.Promised = 40, 30, 20 }, 1, 50},
		"no more than the service takes":    {func(a *tagAccount) { a.demand, a.Limiting = 40, 10 }, 1, 25},
		"nor than the total earns":          {func(a *tagAccount) { a.demand = 1000 }, 1, 260},
		"nor than the limit lets it use":    {func(a *tagAccount) { a.demand, a.rate, a.held = 40, 8, true }, 1, 20},
		"nor than a hard total gives":       {func(a *tagAccount) { a.demand, a.quota.Hard, a.quota.Per = 40, true, 10*sec }, 1, 1},
		"nor than a request may name":       {func(a *tagAccount) { ofBudget(a, 0, limit.ThenLower); a.demand = 1e12 }, 1, maxAsk},
		"a budget alone bounds nothing yet": {func(a *tagAccount) { ofBudget(a, 30, limit.ThenRefuse); a.demand = 40 }, 1, 100},
		"part of a token is one":            {func(a *tagAccount) { a.demand = 0.86 }, 1, 3}, // 2.15
		"a trace of one is none":            {func(a *tagAccount) { a.demand = 0.82 }, 1, 2}, // 2.05
		"nothing is needed":                 {func(a *tagAccount) { a.InHand = 500 }, 1, 0},
		"one is kept warm":                  {func(*tagAccount) {}, 1, 1},
		"nearly for long":                   {func(a *tagAccount) { a.active = askAt - 10*askEvery + 1 }, 1, 1},
		"not for ever":                      {func(a *tagAccount) { a.active = askAt - 10*askEvery }, 1, 0},
		"not beside those in hand":          {func(a *tagAccount) { a.InHand = 1 }, 1, 0},
		"nor beside those promised":         {func(a *tagAccount) { a.InHand, a.Promised = 5, 5 }, 1, 0},
		"where there are two for each":      {func(a *tagAccount) { a.quota.Total = 2 }, 2, 1},
		"else it is not":                    {func(a *tagAccount) { a.quota.Total = 2 }, 3, 0},
		"of a budget it always is":          {func(a *tagAccount) { ofBudget(a, 30, limit.ThenRefuse) }, 3, 1},
		"who waits gets one however it is":  {func(a *tagAccount) { a.Waiting, a.rate, a.held, a.active = 5, 0.02, true, sec }, 1, 1},
		"and who doesn't gets none":         {func(a *tagAccount) { a.demand, a.rate, a.held, a.active = 5, 0.02, true, sec }, 1, 0},
		"the next request comes first":      {func(a *tagAccount) { a.demand, a.reserved = 40, []tagBatch{{from: askAt + askEvery + 1}} }, 1, 0},
		"it comes too late":                 {func(a *tagAccount) { a.demand, a.reserved = 40, []tagBatch{{from: askAt + askEvery}, {from: askAt}} }, 1, 20},
		"what has come is no reason":        {func(a *tagAccount) { a.demand, a.reserved = 40, []tagBatch{{from: askAt - sec}} }, 1, 100},
	} {
		t.Run(name, func(t *testing.T) {
			got, ahead := anAccount(c.but).ask(askAt, askEvery, c.live)
			require.Equal(t, c.want, got)
			require.Zero(t, ahead, "nobody waits for tokens of the tag")
		})
	}
	a := &tagAccount{quota: limit.Quota{Total: 100}.WithDefaults(sec)}
	got, _ := a.ask(sec, askEvery, 1)
	require.Zero(t, got, "it was never in use")
}

// For waiting callers an account asks for whole calls: at once if all of them, or the first, soon have their tokens beside those in hand.
// Otherwise all that they lack is set aside for however long, and nothing in hand counts, because it would lapse before.
func TestAnAccountAsksForWholeCalls(t *testing.T) {
	const far = wire.MaxReach
	for name, c := range map[string]struct {
		but   func(a *tagAccount)
		live  int
		want  int64
		ahead time.Duration
	}{
		"nothing in hand":          {func(a *tagAccount) { a.Head, a.Line = 4, 8 }, 2, 8, far},
		"some in hand":             {func(a *tagAccount) { a.InHand, a.Head, a.Line, a.Lasts = 5, 4, 8, 3600*ms }, 2, 3, 3 * sec},
		"all in hand":              {func(a *tagAccount) { a.InHand, a.Head, a.Line, a.Lasts = 9, 4, 8, 3600*ms }, 2, 0, 0},
		"all that soon comes":      {func(a *tagAccount) { a.InHand, a.Head, a.Line = 5, 4, 185 }, 2, 180, 1},
		"more than that":           {func(a *tagAccount) { a.InHand, a.Head, a.Line = 5, 10, 186 }, 2, 5, 1},
		"all while the hand lasts": {func(a *tagAccount) { a.InHand, a.Head, a.Line, a.Lasts = 5, 4, 305, 3600*ms }, 2, 300, 3 * sec},
		"more than that lasts":     {func(a *tagAccount) { a.InHand, a.Head, a.Line, a.Lasts = 5, 4, 306, 3600*ms }, 2, 306, far},
		"others were first":        {func(a *tagAccount) { a.InHand, a.Head, a.Line, a.paid = 5, 10, 85, askAt+sec }, 2, 80, 1},
		"they have been paid":      {func(a *tagAccount) { a.InHand, a.Head, a.Line, a.paid = 5, 10, 186, askAt-sec }, 2, 5, 1},
		"one more than they leave": {func(a *tagAccount) { a.InHand, a.Head, a.Line, a.paid = 5, 10, 86, askAt+sec }, 2, 5, 1},
		"the first alone":          {func(a *tagAccount) { a.InHand, a.Head, a.Line = 5, 185, 400 }, 2, 180, 1},
		"not even the first":       {func(a *tagAccount) { a.InHand, a.Head, a.Line = 5, 186, 400 }, 2, 400, far},
		"the first needs none":     {func(a *tagAccount) { a.InHand, a.Head, a.Line = 5, 5, 400 }, 2, 400, far},
		"the first has more":       {func(a *tagAccount) { a.InHand, a.Head, a.Line = 5, 4, 400 }, 2, 400, far},
		"others come before":       {func(a *tagAccount) { a.InHand, a.Head, a.Line, a.behind = 5, 4, 8, true }, 2, 8, far},
		"some are set aside": {func(a *tagAccount) {
			a.InHand, a.Head, a.Line, a.reserved = 5, 4, 30, []tagBatch{{tokens: 10, covers: 10}}
		}, 2, 20, far},
		"in two parts": {func(a *tagAccount) {
			a.Head, a.Line, a.reserved = 4, 30, []tagBatch{{tokens: 10, covers: 10}, {tokens: 5, covers: 5}}
		}, 2, 15, far},
		"and for who comes later":   {func(a *tagAccount) { a.demand, a.InHand, a.Head, a.Line = 200, 5, 10, 10 }, 1, 180, 1},
		"a budget has all of them":  {func(a *tagAccount) { ofBudget(a, 30, limit.ThenLower); a.InHand, a.Head, a.Line = 5, 10, 1000 }, 2, 995, 0},
		"the limit is all promised": {func(a *tagAccount) { a.held, a.rate, a.Promised, a.Waiting, a.Head, a.Line = true, 4, 10, 50, 4, 8 }, 2, 0, 0},
		"but for some":              {func(a *tagAccount) { a.held, a.rate, a.Promised, a.Waiting, a.Head, a.Line = true, 4, 9, 50, 4, 8 }, 2, 8, far},
		"but none has them":         {func(a *tagAccount) { a.held, a.rate, a.InHand, a.Waiting, a.Head, a.Line = true, 4, 10, 50, 4, 20 }, 2, 10, 1},
		"the limit is there":        {func(a *tagAccount) { a.rate, a.Promised, a.Head, a.Line = 4, 10, 4, 8 }, 2, 8, far},
		// Later callers wait for no more than comes at once, while others use the tag or all who wait have theirs by then.
		"alone for long":            {func(a *tagAccount) { a.demand, a.Head, a.Line = 200, 4, 230 }, 1, 260, far},
		"alone at once":             {func(a *tagAccount) { a.demand, a.Head, a.Line = 200, 4, 200 }, 1, 200, far},
		"not alone":                 {func(a *tagAccount) { a.demand, a.Head, a.Line = 200, 4, 230 }, 2, 230, far},
		"nobody waits":              {func(a *tagAccount) { a.demand = 200 }, 2, 260, 0},
		"others wait behind":        {func(a *tagAccount) { a.demand, a.Head, a.Line, a.More = 40, 10, 10, true }, 2, 10, far},
		"a large call may come":     {func(a *tagAccount) { a.demand, a.size, a.Head, a.Line = 20, 50, 4, 4 }, 2, 50, far},
		"half of it is enough":      {func(a *tagAccount) { a.demand, a.size, a.Head, a.Line = 10, 50, 4, 4 }, 2, 50, far},
		"less is not":               {func(a *tagAccount) { a.demand, a.size, a.Head, a.Line = 9.6, 50, 4, 4 }, 2, 4, far},
		"nor without who waits":     {func(a *tagAccount) { a.demand, a.size = 10, 50 }, 2, 0, 0},
		"what is set aside counts":  {func(a *tagAccount) { a.demand, a.size, a.reserved = 10, 50, []tagBatch{{tokens: 35, covers: 10}} }, 2, 25, 0},
		"all but one of it":         {func(a *tagAccount) { a.demand, a.size, a.reserved = 10, 50, []tagBatch{{tokens: 34, covers: 10}} }, 2, 0, 0},
		"what callers have doesn't": {func(a *tagAccount) { a.demand, a.size, a.reserved = 24, 55, []tagBatch{{tokens: 10, covers: 20}} }, 2, 60, 0},
		"it fills up what there is": {func(a *tagAccount) {
			a.demand, a.size, a.Head, a.Line, a.reserved = 8.8, 50, 4, 14, []tagBatch{{tokens: 15, covers: 10}}
		}, 2, 45, far},
	} {
		t.Run(name, func(t *testing.T) {
			got, ahead := anAccount(c.but).ask(askAt, askEvery, c.live)
			require.Equal(t, c.want, got)
			require.Equal(t, c.ahead, ahead)
		})
	}
}

// What budgets have left bounds a draw that is set aside, unless the first call is larger: that waits for another window.
func TestBudgetsBoundWhatIsSetAside(t *testing.T) {
	for left, want := range map[int64]int64{61: 60, 60: 60, 30: 30, 20: 20, 19: 60} {
		for _, then := range []limit.Then{limit.ThenRefuse, limit.ThenLower} {
			a := anAccount(func(a *tagAccount) { ofBudget(a, left, then); a.quota.Total, a.Head, a.Line = 100, 20, 60 })
			got, _ := a.ask(askAt, askEvery, 2)
			if then == limit.ThenLower {
				require.EqualValues(t, 60, got, "the tag goes on without it")
				continue
			}
			require.Equal(t, want, got, left)
			a.budgets[0].start = 0
			got, _ = a.ask(askAt, askEvery, 2)
			require.EqualValues(t, 60, got, "its window is not known")
		}
	}
}

// Without the store an account earns its part of the total, for at most an interval and a quarter at a time, and saves up what comes in an
// interval, the burst, one token, or the first call, unless the quota is hard.
func TestWhatAnAccountEarnsWithoutTheStore(t *testing.T) {
	hard := limit.Quota{Hard: true, Total: 1000, Per: 100 * sec}
	for name, c := range map[string]struct {
		but         func(a *tagAccount)
		want, least int64
		got         int64
		credit      float64
	}{
		"its part":                  {func(*tagAccount) {}, 1000, 0, 50, 0},
		"no more than it wants":     {func(*tagAccount) {}, 30, 0, 30, 20},
		"after a long time":         {func(a *tagAccount) { a.quota.Burst, a.earned = 400, 0 }, 1000, 0, 125, 0},
		"up to an interval's":       {func(a *tagAccount) { a.credit = 80 }, 1000, 0, 100, 0},
		"or the burst":              {func(a *tagAccount) { a.quota.Burst, a.credit = 400, 190 }, 1000, 0, 200, 0},
		"or a token":                {func(a *tagAccount) { a.quota.Total, a.quota.Per, a.credit = 1, 10*sec, 0.98 }, 5, 0, 1, 0},
		"or the first call":         {func(a *tagAccount) { a.credit = 280 }, 1000, 300, 300, 0},
		"not if it's hard":          {func(a *tagAccount) { a.quota, a.credit = hard, 280 }, 1000, 300, 0, 998. / 108},
		"not quite the first call":  {func(a *tagAccount) { a.credit = 249 }, 1000, 300, 0, 299},
		"just the first call":       {func(*tagAccount) {}, 1000, 50, 50, 0},
		"whole tokens":              {func(a *tagAccount) { a.credit = -42.5 }, 1000, 0, 7, 0.5},
		"a debt is paid first":      {func(a *tagAccount) { a.credit = -80 }, 1000, 0, 0, -30},
		"the largest call":          {func(a *tagAccount) { a.quota.Total, a.credit = 1e9, 9e8 }, maxAsk, 2e9, maxAsk, 0},
		"its part of a budget":      {func(a *tagAccount) { ofBudget(a, 300, limit.ThenRefuse); a.credit = 5 }, 1000, 0, 100, 5},
		"a spent one":               {func(a *tagAccount) { ofBudget(a, -300, limit.ThenRefuse) }, 1000, 0, 0, 0},
		"one that lowers":           {func(a *tagAccount) { ofBudget(a, 300, limit.ThenLower) }, 1000, 0, 100, 0},
		"a spent one that lowers":   {func(a *tagAccount) { ofBudget(a, 0, limit.ThenLower) }, 1000, 0, 1000, 0},
		"an unknown window":         {func(a *tagAccount) { ofBudget(a, 300, limit.ThenRefuse); a.budgets[0].start = 0 }, 1000, 0, 0, 0},
		"a budget beside the total": {func(a *tagAccount) { ofBudget(a, 300, limit.ThenRefuse); a.quota.Total = 10 }, 1000, 0, 5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := anAccount(func(a *tagAccount) { a.earned = askAt - sec; c.but(a) })
			own := a.budgets[0].own
			require.Equal(t, c.got, a.earn(askAt, askEvery, 0.5, c.want, c.least))
			require.InDelta(t, c.credit, a.credit, 1e-6)
			require.Equal(t, own+c.got, a.budgets[0].own)
			require.Equal(t, askAt, a.earned)
		})
	}
	a := anAccount(func(a *tagAccount) { ofBudget(a, 300, limit.ThenRefuse); a.credit = 5 })
	a.unearn(30, 20)
	require.Equal(t, []float64{35, 80}, []float64{a.credit, float64(a.budgets[0].own)}, "what is given up can be earned again")
	a.owes(1000)
	require.Equal(t, []float64{-965, 1080}, []float64{a.credit, float64(a.budgets[0].own)})
	a.unearn(0, 2000)
	require.Zero(t, a.budgets[0].own)
}

// Which quotas need tokens of the tag's own, and what its budgets say.
func TestWhatAQuotaMakesOfAnAccount(t *testing.T) {
	budgets := []limit.Budget{{}}
	for _, c := range []struct {
		q   limit.Quota
		has bool
	}{
		{limit.Quota{}, false},
		{limit.Quota{Total: 1}, true},
		{limit.Quota{Budgets: budgets}, true},
		{limit.Quota{Total: 1, Blocked: true}, false},
		{limit.Quota{Budgets: budgets, Blocked: true}, false},
	} {
		require.Equal(t, c.has, hasBucket(&c.q), c)
	}
	require.Zero(t, perSecond(5, 0))
	require.InDelta(t, 5, perSecond(10, askEvery), 0)

	for _, shadow := range []bool{false, true} {
		for lack, stops := range map[driver.Lack]bool{driver.LackBudget: true, driver.LackTotal: false} {
			a := tagAccount{lack: lack, quota: limit.Quota{Shadow: shadow}}
			require.Equal(t, stops && !shadow, a.exhausted(), "%v %v", lack, shadow)
		}
	}
	for _, c := range []struct {
		b     tagBudget
		spent bool
	}{
		{tagBudget{start: 1, amount: 9, seen: 5, own: 3}, false},
		{tagBudget{start: 1, amount: 9, seen: 5, own: 4}, true},
		{tagBudget{start: 1, amount: 9, seen: 10}, true},
		{tagBudget{amount: 0}, false},
	} {
		require.Equal(t, c.spent, c.b.spentAll(), c)
		for then, lowers := range map[limit.Then]bool{limit.ThenLower: c.spent, limit.ThenRefuse: false} {
			a := tagAccount{quota: limit.Quota{Budgets: []limit.Budget{{Then: then}}}, budgets: [wire.MaxBudgets]tagBudget{c.b}}
			require.Equal(t, lowers, a.lowered(), c)
		}
	}
	for owns, want := range map[[2]int64]int64{{0, 0}: 0, {5, 0}: 5, {0, 5}: 5, {5, 3}: 3, {3, 5}: 3, {5, 5}: 5, {2e9, 3e9}: maxAsk} {
		a := tagAccount{quota: limit.Quota{Budgets: make([]limit.Budget, 2)}, budgets: [wire.MaxBudgets]tagBudget{{own: owns[0]}, {own: owns[1]}, {own: 1}}}
		require.Equal(t, want, a.unreported(), owns)
	}
	a := tagAccount{quota: limit.Quota{Budgets: make([]limit.Budget, 3)}, budgets: [wire.MaxBudgets]tagBudget{
		{start: 1, end: 9, amount: 90, seen: 4}, {start: 1, end: 8, amount: 80, seen: 2, own: 1}, {end: 7, amount: 70},
	}}
	spent, amount := a.nearest()
	require.Equal(t, []int64{3, 80}, []int64{spent, amount}, "of the known window that ends first")
	a.quota.Budgets = a.quota.Budgets[:1]
	spent, amount = a.nearest()
	require.Equal(t, []int64{4, 90}, []int64{spent, amount})
}
