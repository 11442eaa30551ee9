package opening

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A slotPool is a pool of pods with a limit on calls in flight whose tags have quotas, and a judge of all of their calls.
type slotPool struct {
	t      *testing.T
	slots  int
	quotas throttle.Quotas
	pods   []*throttle.InFlight

	mu      sync.Mutex
	running map[string]int
	all     int
	seconds map[string]float64 // slot-seconds
	callers uint64
	at      time.Time
}

var slotPools int

func newSlotPool(t *testing.T, pods, slots int, q throttle.Quotas) *slotPool {
	t.Helper()
	slotPools++
	p := &slotPool{t: t, slots: slots, quotas: q.WithDefaults(0), running: map[string]int{}, seconds: map[string]float64{}, at: time.Now()}
	for i := range pods {
		f, err := InFlight(t.Context(), slots, Config{Store: fmt.Sprint("memory://slots", slotPools), Pool: "p", ID: fmt.Sprint(i), Quotas: q})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		p.pods = append(p.pods, f)
	}
	return p
}

// count counts a call that begins or ends, in the pool and in its tag.
func (p *slotPool) count(tag string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for name, k := range p.running {
		p.seconds[name] += now.Sub(p.at).Seconds() * float64(k)
	}
	p.at = now
	own, q := p.quotas.Find(tag)
	p.running[own] += n
	p.all += n
	if n > 0 {
		require.LessOrEqual(p.t, p.all, p.slots, "the pool")
		if q.Total > 0 {
			require.LessOrEqual(p.t, p.running[own], q.Total, "tag %q", own)
		}
	}
}

// used returns the slot-seconds since the last call of it.
func (p *slotPool) used() map[string]float64 {
	p.count("", 0)
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.seconds
	p.seconds = map[string]float64{}
	return was
}

// A caller makes calls of a tag at a pod one after the other: so long each, with so much patience (0: any), and it drops so many of ten.
type caller struct {
	tag             func(r *rand.Rand) string
	takes, patience time.Duration
	cancels         bool
}

func (p *slotPool) call(ctx context.Context, all *sync.WaitGroup, pod, n int, c caller) {
	for range n {
		p.callers++
		r := rand.New(rand.NewPCG(49, p.callers))
		all.Go(func() {
			for ctx.Err() == nil {
				tag, call, stop := c.tag(r), ctx, func() {}
				if c.patience > 0 {
					patience := c.patience
					if c.cancels {
						patience = time.Duration(r.Int64N(int64(2 * c.patience)))
					}
					call, stop = context.WithTimeout(ctx, patience)
				}
				permit, err := p.pods[pod].ForTag(tag).Acquire(call, 1)
				stop()
				if err != nil {
					time.Sleep(50 * time.Millisecond)
					continue
				}
				p.count(tag, 1)
				time.Sleep(c.takes)
				p.count(tag, -1)
				permit.Settle(1)
			}
		})
	}
}

func always(tag string) func(*rand.Rand) string { return func(*rand.Rand) string { return tag } }

// TestMatrixOfSlots: whatever callers do, all slots are in use, no tag has more than its total, and what is reserved is had.
func TestMatrixOfSlots(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	testkit.SkipShort(t, "many pools")
	eight := make([]string, 8)
	quotas := throttle.Quotas{
		Tags:  map[string]throttle.Quota{"acme": {Reserved: 4, Total: 6}, "hog": {}},
		Match: []throttle.QuotaPattern{{Tag: "inv-*", Quota: throttle.Quota{Total: 2}}}, Other: throttle.Quota{Total: 8},
	}
	for i := range eight {
		eight[i] = fmt.Sprint("eq", i)
		quotas.Tags[eight[i]] = throttle.Quota{}
	}
	whose := map[string]func(k int) func(*rand.Rand) string{
		"one hog": func(int) func(*rand.Rand) string { return always("hog") },
		"8 equal": func(k int) func(*rand.Rand) string { return always(eight[k%8]) },
		"1000 invented": func(int) func(*rand.Rand) string {
			return func(r *rand.Rand) string { return fmt.Sprint("inv-", r.IntN(1000)) }
		},
	}
	for _, pods := range []int{1, 4, 16} {
		for _, takes := range []time.Duration{50 * time.Millisecond, time.Second, 30 * time.Second} {
			for manner, c := range map[string]caller{
				"patient": {takes: takes}, "impatient": {takes: takes, patience: 500 * time.Millisecond},
				"cancelled": {takes: takes, patience: takes + time.Second, cancels: true},
			} {
				for who, of := range whose {
					t.Run(fmt.Sprintf("%dx%v/%s/%s", pods, takes, manner, who), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							p := newSlotPool(t, pods, 32, quotas)
							ctx, cancel := context.WithCancel(t.Context())
							var all sync.WaitGroup
							t.Cleanup(func() {
								cancel()
								all.Wait()
							})
							for pod := range pods {
								for k := range 128 / pods {
									c.tag = of(k + pod)
									p.call(ctx, &all, pod, 1, c)
								}
								p.call(ctx, &all, pod, 1+16/pods, caller{tag: always("acme"), takes: time.Second})
							}
							time.Sleep(15*time.Second + takes)
							p.used()
							span := 15*time.Second + 3*takes
							time.Sleep(span)
							sum, used := 0.0, p.used()
							for _, s := range used {
								sum += s
							}
							t.Logf("%.3f acme %.2f", sum/32/span.Seconds(), used["acme"]/span.Seconds())
							least := 0.95
							if pods == 16 && takes < time.Second && who == "1000 invented" {
								least = 0.45 // almost each call has a new tag with a total, which waits for an answer of the store first
							}
							assert.Greater(t, sum/32/span.Seconds(), least)
							had := 3.8 // of the four that are reserved
							if pods > 1 && takes == 30*time.Second {
								had = 3 // a slot that it loses at one pod comes back when a call there ends: 3.6 was the least of 27 runs with 16 pods
							}
							assert.Greater(t, used["acme"]/span.Seconds(), had)
						})
					})
				}
			}
		}
	}
}

// A tag has its reserved slots beside a hog also if they are its total, on one pod and on several.
func TestAReservationThatIsTheTotal(t *testing.T) {
	for _, pods := range []int{1, 3, 8} {
		t.Run(fmt.Sprint(pods), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newSlotPool(t, pods, 16, throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Reserved: 4, Total: 4}}})
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				t.Cleanup(func() {
					cancel()
					all.Wait()
				})
				for pod := range pods {
					p.call(ctx, &all, pod, 16, caller{tag: always("hog"), takes: 3 * time.Second})
					p.call(ctx, &all, pod, 6, caller{tag: always("acme"), takes: 2 * time.Second})
				}
				time.Sleep(30 * time.Second)
				p.used()
				time.Sleep(time.Minute)
				used := p.used()
				require.Greater(t, used["acme"]/60, 3.6)
				require.Greater(t, used[""]/60, 11.4)
			})
		})
	}
}
