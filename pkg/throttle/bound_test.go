package throttle

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// A use is a permit's tokens at the time at which they were granted.
type use struct {
	at     time.Duration
	tokens int
}

// worst returns the largest number of tokens used in any window of length w.
func worst(uses []use, w time.Duration) (most int) {
	sum, from := 0, 0
	for _, u := range uses {
		sum += u.tokens
		for uses[from].at <= u.at-w {
			sum -= uses[from].tokens
			from++
		}
		most = max(most, sum)
	}
	return most
}

// A service hangs: calls are drawn for a minute, none is used. Then all of them
// are cancelled in bulk while others wait to call: no window may see more than
// max x T + burst, and one max on top for what was held back.
func TestBulkCancelKeepsTheBound(t *testing.T) {
	for _, order := range []string{"oldest first", "newest first", "random"} {
		t.Run(order, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := Limit{Max: 100, Burst: 10}
				th := whole(t, l)
				began := time.Now()
				var hung []Permit
				for time.Since(began) < time.Minute {
					p := acquire(t, th, 1)
					hung = append(hung, p)
				}
				require.Greater(t, len(hung), 5900)
				switch order {
				case "newest first":
					for i, j := 0, len(hung)-1; i < j; i, j = i+1, j-1 {
						hung[i], hung[j] = hung[j], hung[i]
					}
				case "random":
					rand.New(rand.NewPCG(1, 2)).Shuffle(len(hung), func(i, j int) { hung[i], hung[j] = hung[j], hung[i] })
				}
				var uses []use
				grab := func() {
					for range drain(th) {
						uses = append(uses, use{time.Since(began), 1})
					}
				}
				for i, p := range hung {
					p.Cancel()
					grab()
					if i%100 == 0 {
						time.Sleep(time.Millisecond)
						grab()
					}
				}
				for range 3000 {
					time.Sleep(time.Millisecond)
					grab()
				}
				for _, w := range []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, 3 * time.Second} {
					bound := int(w.Seconds()*100) + 10 + 100
					require.LessOrEqual(t, worst(uses, w), bound, "any %s", w)
				}
				require.GreaterOrEqual(t, worst(uses, time.Second), 100, "the limit is used again")
			})
		})
	}
}

// Every processor of a pool holds a period's worth of permits that it drew when
// the whole share was its own. When the share comes round again, faster this time,
// they are cancelled: together they may add one max to a window, not one each.
func TestCancellingInManyProcessorsKeepsTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Limit{Max: 100, Burst: 10}
		const processors = 4
		var ths []*Throttle
		var ss []*script
		held := make([][]Permit, processors)
		for i := range processors {
			th, s := scripted(t, l, 0)
			ths, ss = append(ths, th), append(ss, s)
			s.give(1)
			for range 100 {
				p := acquire(t, th, 1)
				held[i] = append(held[i], p)
			}
			s.give(0)
		}
		var uses []use
		began := time.Now()
		for i, th := range ths {
			ss[i].give(1)
			for range 25 {
				time.Sleep(10 * time.Millisecond)
				for range drain(th) {
					uses = append(uses, use{time.Since(began), 1})
				}
			}
			for _, p := range held[i] {
				p.Cancel()
				for range drain(th) {
					uses = append(uses, use{time.Since(began), 1})
				}
			}
			ss[i].give(0)
		}
		require.LessOrEqual(t, worst(uses, time.Second), 100+10+100+processors)
	})
}

// Permits of any size are held for any time, and given back in part or whole:
// what is really used keeps within the bound in every window.
func TestRandomSettlingKeepsTheBound(t *testing.T) {
	for seed := range uint64(testkit.Fewer(60)) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			l := Limit{Max: 50 + r.IntN(200), Burst: 1 + r.IntN(300)}
			th := whole(t, l)
			largest := 1 + r.IntN(min(30, l.Burst))
			patience := time.Duration(1+r.IntN(4000)) * time.Millisecond
			type held struct {
				p     Permit
				until time.Duration
				use   int // index in uses
			}
			var uses []use
			var open []held
			began := time.Now()
			bulk := time.Duration(0)
			for time.Since(began) < 20*time.Second {
				time.Sleep(time.Duration(r.ExpFloat64() * float64(2*time.Millisecond)))
				now := time.Since(began)
				for {
					p, ok := th.TryAcquire(1 + r.IntN(largest))
					if !ok {
						break
					}
					uses = append(uses, use{now, p.N()})
					open = append(open, held{p, now + time.Duration(r.ExpFloat64()*float64(patience)), len(uses) - 1})
				}
				cancelAll := now > bulk
				if cancelAll {
					bulk = now + 2*patience
				}
				kept := open[:0]
				for _, h := range open {
					if !cancelAll && now < h.until {
						kept = append(kept, h)
						continue
					}
					used := 0
					if r.IntN(3) == 0 {
						used = r.IntN(h.p.N() + 1)
					}
					h.p.Settle(used)
					uses[h.use].tokens = used
				}
				open = kept
			}
			sound(t, th)
			for _, w := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second} {
				bound := w.Seconds()*float64(l.Max) + float64(l.Burst+max(l.Max, l.Burst)+largest)
				require.LessOrEqual(t, float64(worst(uses, w)), bound, "seed %d: any %s of %+v", seed, w, l)
			}
		})
	}
}

// Shares go to and fro between processors that always sum up to the whole, with
// one sync's delay at most; the pool keeps its bound in every window.
func TestPoolKeepsTheBoundWhileSharesMove(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 9))
			l := Limit{Max: 100 + r.IntN(1000), Burst: 1 + r.IntN(400)}
			const processors = 4
			var ths []*Throttle
			var ss []*script
			for range processors {
				th, s := scripted(t, l, 0)
				ths, ss = append(ths, th), append(ss, s)
			}
			move := func() {
				// All fall before one rises: claims never add up to more than one.
				parts := make([]float64, processors)
				sum := 0.0
				for i := range parts {
					parts[i] = r.ExpFloat64()
					if r.IntN(4) == 0 {
						parts[i] = 0
					}
					sum += parts[i]
				}
				for i, s := range ss {
					if old := ths[i].Status().Lease.Share; sum > 0 && fraction(parts[i]/sum) < old {
						s.give(parts[i] / sum)
					}
				}
				for i, s := range ss {
					if sum > 0 {
						s.give(parts[i] / sum)
					}
				}
			}
			var uses []use
			busy := 0
			began := time.Now()
			grab := func() {
				for range drain(ths[busy]) {
					uses = append(uses, use{time.Since(began), 1})
				}
			}
			for range 1000 {
				time.Sleep(time.Duration(r.ExpFloat64() * float64(20*time.Millisecond)))
				if r.IntN(50) == 0 {
					time.Sleep(time.Minute) // all are idle, and overflow unseen
				}
				if r.IntN(5) == 0 {
					grab()
					move()
					busy = r.IntN(processors)
				}
				grab()
			}
			for _, w := range []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, 5 * time.Second} {
				bound := w.Seconds()*float64(l.Max) + float64(l.Burst) + processors
				require.LessOrEqual(t, float64(worst(uses, w)), bound, "seed %d: any %s of %+v", seed, w, l)
			}
		})
	}
}
