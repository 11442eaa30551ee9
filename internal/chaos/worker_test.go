//go:build numathrottle_faults

package chaos

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/natsstore"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/redisstore"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// jobVariable makes this test binary a worker instead of running tests.
const jobVariable = "NUMATHROTTLE_CHAOS_JOB"

// A job is what a worker is told.
type job struct {
	Worker  int    `json:"worker"` // its number in the pool
	Pool    string `json:"pool"`
	Store   string `json:"store"`   // a URL
	Service string `json:"service"` // the socket of the counting service
	Max     int    `json:"max"`
	Burst   int    `json:"burst"`
	// Strict to Slots, and MaxReserved, are those of the pool.
	Strict      bool          `json:"strict"`
	Hard        bool          `json:"hard"`
	RampUp      time.Duration `json:"rampUp"`
	Min         int           `json:"min"`
	Slots       int           `json:"slots"`
	OfTag       bool          `json:"ofTag"`
	Soft        bool          `json:"soft"`
	MaxReserved int           `json:"maxReserved"`
	Lease       time.Duration `json:"lease"`
	// Longest is the longest lease of the store. 0: the limit is opened by
	// numathrottle.Open, with all defaults.
	Longest    time.Duration `json:"longest"`
	Goroutines int           `json:"goroutines"`
	Hold       time.Duration `json:"hold"`
	Overdraw   bool          `json:"overdraw"`
	// StateDir is that of numathrottle.Open; empty: none.
	StateDir string `json:"stateDir"`
	// Quota is that of the tag that the worker draws for; nil: it draws for none.
	Quota *tenantQuota `json:"quota"`
}

func TestMain(m *testing.M) {
	servers.BeNATSNode()
	if encoded := os.Getenv(jobVariable); encoded != "" {
		if err := work(encoded); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Tests in parallel wait, mostly: more of them than processors are welcome.
	flag.Parse()
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err) // there is no such flag any more
	}
	os.Exit(m.Run())
}

// work is the whole life of a worker: it draws as fast as it is let, until it is
// killed. It returns only when something is wrong.
func work(encoded string) error {
	var j job
	if err := json.Unmarshal([]byte(encoded), &j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	service, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: j.Service, Net: "unixgram"})
	if err != nil {
		return err
	}
	ctx := context.Background()
	call := j.call
	if j.Slots > 0 {
		call = j.hold
	}
	limiter, lease, err := j.open(ctx)
	if err != nil {
		return err
	}
	wrong := make(chan error)
	for range j.Goroutines {
		go func() {
			for {
				if err := call(ctx, service, limiter, lease); err != nil {
					wrong <- err
				}
			}
		}()
	}
	return <-wrong
}

// call draws a token and calls the service at once.
func (j *job) call(ctx context.Context, service *net.UnixConn, limiter throttle.Limiter, lease *leaseWatch) error {
	if j.Hard {
		rest(clock())
	}
	asked := clock()
	if _, err := limiter.Acquire(ctx, 1); err != nil {
		return err
	}
	granted := clock()
	u := use{worker: j.Worker, asked: asked, granted: granted, until: lease.end(), ceiling: lease.ceiling(j.Max)}
	if j.Hold > 0 {
		time.Sleep(j.Hold)
	}
	_, err := service.Write(u.encode())
	return err
}

// limit is the limit that the worker is told.
func (j *job) limit() throttle.Limit {
	l := throttle.Limit{Max: j.Max, Burst: j.Burst, Strict: j.Strict, MaxReserved: j.MaxReserved, Hard: j.Hard && !j.Soft}
	if j.RampUp > 0 && !j.Soft {
		l.Min, l.RampUpDuration, l.Mode = j.Min, j.RampUp, throttle.RampScheduled{}
	}
	return l
}

// open joins the pool.
func (j *job) open(ctx context.Context) (throttle.Limiter, *leaseWatch, error) {
	id := fmt.Sprintf("worker-%d", j.Worker)
	limit := j.limit()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if j.Longest == 0 {
		limiter, err := numathrottle.Open(ctx, numathrottle.Config{
			Limit: limit, Store: j.Store, Pool: j.Pool, ID: id,
			OnStoreLoss: numathrottle.StoreLossStop, Logger: log, StateDir: cmp.Or(j.StateDir, "none"),
		})
		return limiter, nil, err
	}
	store, closeStore, err := openStore(j.Store, j.Longest, log)
	if err != nil {
		return nil, nil, err
	}
	member, err := consensus.Join(ctx, store, j.Pool, consensus.WithID(id), consensus.WithLease(j.Lease),
		consensus.WithOnStoreLoss(consensus.Stop), consensus.WithLogger(log))
	if err != nil {
		return nil, nil, err
	}
	go logView(log, member)
	closing := []throttle.Option{
		throttle.OnClose(member.Leave), throttle.OnClose(func(context.Context) error { closeStore(); return nil }),
	}
	if j.Slots > 0 {
		slots := j.Slots
		if j.Soft {
			slots += 2
		}
		closing = append(closing, throttle.WithSharer(member))
		if !j.OfTag {
			limiter, err := throttle.NewInFlight(slots, closing...)
			return limiter, nil, err
		}
		limiter, err := throttle.NewInFlight(limitAboveTotal*j.Slots, append(closing, throttle.WithQuotas(throttle.Quotas{
			Tags: map[string]throttle.Quota{tenantName: {Total: slots}},
		}))...)
		if err != nil {
			return nil, nil, err
		}
		return limiter.ForTag(tenantName), nil, nil
	}
	lease := &leaseWatch{Member: member, overdraw: j.Overdraw}
	closing = append(closing, throttle.WithSharer(lease))
	if j.Quota == nil {
		limiter, err := throttle.New(limit, closing...)
		return limiter, lease, err
	}
	limiter, err := throttle.New(limit, append(closing, j.Quota.option(j.Burst))...)
	if err != nil {
		return nil, nil, err
	}
	return limiter.ForTag(tenantName), lease, nil
}

// logView writes down what the worker thinks of its pool, each time that it
// changes, to explain what the judge has found.
func logView(log *slog.Logger, member *consensus.Member) {
	var last string
	for range time.Tick(100 * time.Millisecond) {
		v := member.View()
		now := fmt.Sprintf("%s share=%.3f want=%.3f demand=%.2f live=%d failures=%d frozen=%t", v.State,
			v.Share.Fraction(), v.Want.Fraction(), v.Demand.Fraction(), v.Live, v.Failures, v.Frozen > 0)
		if now != last {
			log.Info("view", "is", now, "revision", v.Revision, "error", v.LastError)
			last = now
		}
	}
}

// openStore connects as numathrottle.Open does, to a store that waits for no
// longer lease than this one.
func openStore(url string, longest time.Duration, log *slog.Logger) (driver.Store, func(), error) {
	u, faults := config.ParseStore(url)
	if err := config.Join(faults); err != nil {
		return nil, nil, err
	}
	if u.Kind == config.NATS {
		conn, err := nats.Connect("nats://"+strings.Join(u.Hosts, ",nats://"), natsstore.ConnectOptions()...)
		if err != nil {
			return nil, nil, err
		}
		opts := []natsstore.Option{natsstore.WithLongestLease(longest), natsstore.WithLogger(log)}
		if u.Replicas > 0 {
			opts = append(opts, natsstore.WithReplicas(u.Replicas))
		}
		store, err := natsstore.New(conn, opts...)
		return store, conn.Close, err
	}
	o := redisstore.ClientOptions(u.Hosts...)
	var client redis.UniversalClient
	if u.Kind == config.RedisSentinel {
		o.MasterName = u.Master
		client = redis.NewFailoverClient(o.Failover())
	} else {
		client = redis.NewClient(o.Simple())
	}
	opts := []redisstore.Option{redisstore.WithLongestLease(longest), redisstore.WithLogger(log)}
	if u.Durable {
		opts = append(opts, redisstore.WithDurable())
	}
	return redisstore.New(client, opts...), func() { _ = client.Close() }, nil
}

// A leaseWatch notes until when the shares are good that pass through it, and which
// limit they are shares of.
type leaseWatch struct {
	*consensus.Member
	last     atomic.Int64
	limit    atomic.Int64 // the ceiling, rounded; 0: that of the configuration
	overdraw bool
}

// end returns the latest end of all leases so far, on the machine's clock; 0 when
// there was none.
func (w *leaseWatch) end() time.Duration {
	if w == nil {
		return 0
	}
	return time.Duration(w.last.Load())
}

// ceiling returns the limit in force, per second: the configured one unless something
// else is known. 0 when the worker does not tell.
func (w *leaseWatch) ceiling(configured int) int {
	if w == nil {
		return 0
	}
	return cmp.Or(int(w.limit.Load()), configured)
}

func (w *leaseWatch) Attach(h sharing.Holder) { w.Member.Attach(&watchedHolder{h, w}) }

type watchedHolder struct {
	sharing.Holder
	watch *leaseWatch
}

// Lease notes the end before anything is granted on it.
func (h *watchedHolder) Lease(l limit.Lease) {
	h.watch.limit.Store(int64(math.Round(l.Ceiling)))
	if l.Share > 0 {
		end := int64(clock() + time.Until(l.Until))
		h.watch.last.Store(max(h.watch.last.Load(), end)) // calls do not overlap
	}
	if h.watch.overdraw {
		if l.Share == 0 {
			return
		}
		l.Until = time.Time{}
	}
	h.Holder.Lease(l)
}

// A use is one call of the service. All times are clock's.
type use struct {
	worker int
	// asked is when the draw began, granted when it had its token.
	asked, granted time.Duration
	// until is the latest end of a lease that the worker knew of at the grant; 0
	// when the worker does not tell. Of a call in flight it is the end of the call.
	until time.Duration
	// ceiling is the limit in force that the worker went by, per second; 0 when it does
	// not tell.
	ceiling int
	// arrived is when the service saw it.
	arrived time.Duration
}

const useSize = 5 * 8

func (u *use) encode() []byte {
	b := make([]byte, 0, useSize)
	for _, v := range []int64{int64(u.worker), int64(u.asked), int64(u.granted), int64(u.until), int64(u.ceiling)} {
		b = binary.NativeEndian.AppendUint64(b, uint64(v))
	}
	return b
}

func decodeUse(b []byte) use {
	at := func(i int) time.Duration { return time.Duration(binary.NativeEndian.Uint64(b[8*i:])) }
	return use{worker: int(at(0)), asked: at(1), granted: at(2), until: at(3), ceiling: int(at(4))}
}
