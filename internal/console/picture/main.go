// Command picture takes the picture of the console for the documentation. It runs a few pools for a while, in this process and with a store
// in memory. It then takes a screenshot of their console with a headless Chromium.
//
//	picture [-for 2m] [-dark] [-o docs/console.png]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/console"
	"github.com/numaproj-contrib/numathrottle/internal/console/browser"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func main() {
	length := flag.Duration("for", 2*time.Minute, "how long the pools work before the picture is taken")
	dark := flag.Bool("dark", false, "take a dark picture")
	out := flag.String("o", filepath.Join("docs", "console.png"), "the file to write")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := take(ctx, *length, *dark, *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

const shown = "orders/pipeline/enrich"

// settle is how long the page is open before the screenshot.
const settle = 3 * time.Second

var quiet = slog.New(slog.DiscardHandler)

// take runs the pools for a while and takes the picture.
func take(ctx context.Context, length time.Duration, dark bool, out string) error {
	binary, err := browser.Find()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	store := memstore.New()
	address := make(chan string, 1)
	served := make(chan error, 1)
	go func() {
		c := console.Config{Store: store, StoreURL: "redis://redis.prod:6379", Quotas: quotas, Listen: "127.0.0.1:0", Logger: quiet}
		served <- console.Serve(ctx, c, func(addr net.Addr) { address <- "http://" + addr.String() })
	}()
	var url string
	select {
	case url = <-address:
	case err := <-served:
		return err
	}
	go look(ctx, url+"/api/pool?name="+shown) // so that there is a history to see
	return work(ctx, store, length, func() error {
		return shoot(ctx, binary, url, browser.Size{Width: 1100, Height: 1860, Dark: dark}, out)
	})
}

// shoot writes the screenshot of the pool's page.
func shoot(ctx context.Context, binary, url string, size browser.Size, out string) error {
	dir, err := os.MkdirTemp("", "numathrottle-picture-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	page, err := browser.Open(ctx, binary, dir, url+"/#pool="+shown, size)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(settle):
	}
	picture, err := page.Picture()
	if err := errors.Join(err, page.Close()); err != nil {
		return err
	}
	return os.WriteFile(out, picture, 0o644) //nolint:gosec // a picture for a page
}

// look is a viewer of a pool until ctx ends.
func look(ctx context.Context, url string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

// work lets four pods share a limit: first one of them is busy, then all, then one leaves and an override is in force. It calls end while
// they work.
func work(ctx context.Context, store consensus.Store, length time.Duration, end func() error) error {
	var pods []*pod
	for i, rate := range []float64{40, 260, 60, 30} {
		p, err := start(ctx, store, fmt.Sprintf("orders-enrich-%d-%s", i, []string{"k2x9p", "7hq4d", "m8wzt", "c5vbn"}[i]), rate)
		if err != nil {
			return err
		}
		defer p.end() //nolint:revive // they end with the work
		pods = append(pods, p)
	}
	steps := []func() error{
		func() error { pods[0].rate(300); pods[2].rate(200); return nil },
		func() error { pods[3].end(); return nil },
		func() error {
			return consensus.SaveOverride(ctx, store, shown, consensus.Override{
				Max: 250, Per: time.Second, Until: time.Now().Add(2 * time.Hour), Reason: "the provider is slow today", By: "ann@desk",
			})
		},
		func() error {
			return consensus.SavePause(ctx, store, shown, throttle.Paused{
				Tag: "tenant-7", Until: time.Now().Add(25 * time.Minute), Reason: "their key was revoked", By: "bob@desk",
			})
		},
		func() error {
			return consensus.SaveQuota(ctx, store, shown, "globex", &throttle.Quota{Reserved: 40, Total: 60}, false)
		},
		end,
	}
	for _, step := range steps {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(length / time.Duration(len(steps))):
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// The limit of the pool, and the quotas of its tenants.
var (
	limit  = throttle.Limit{Max: 400}
	quotas = throttle.Quotas{
		Tags: map[string]throttle.Quota{
			"acme":     {Reserved: 120, Budgets: []throttle.Budget{{Amount: 2_000_000, Per: "day"}}},
			"globex":   {Reserved: 40, Total: 100},
			"tenant-7": {Total: 3000, Per: time.Minute},
			"reports":  {Class: "batch"},
		},
		Other: throttle.Quota{Total: 20},
	}
	// callers are the tags of successive calls; empty: a name without a quota.
	callers = []string{"acme", "globex", "acme", "reports", "globex", "acme", "tenant-7", "reports", "acme", ""}
)

// A pod is one processor with callers.
type pod struct {
	th    *throttle.Throttle
	pace  chan float64
	ended context.CancelFunc
}

// start starts a pod that would draw at the given rate per second.
func start(ctx context.Context, store consensus.Store, id string, rate float64) (*pod, error) {
	m, err := consensus.Join(ctx, store, shown, consensus.WithID(id), consensus.WithLogger(quiet), consensus.WithLease(consensus.MinLease))
	if err != nil {
		return nil, err
	}
	th, err := throttle.New(limit, throttle.WithSharer(m), throttle.OnClose(m.Leave), throttle.WithQuotas(quotas))
	if err != nil {
		return nil, errors.Join(err, m.Leave(ctx))
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &pod{th: th, pace: make(chan float64, 1), ended: cancel}
	go p.call(ctx, rate)
	return p, nil
}

func (p *pod) rate(rate float64) { p.pace <- rate }

func (p *pod) end() {
	p.ended()
	_ = p.th.Close() // closing it again does nothing
}

// call starts calls at the given rate per second, for each tag in turn; up to twelve calls of a tag may wait.
func (p *pod) call(ctx context.Context, rate float64) {
	all := map[string]chan struct{}{}
	for n := 0; ctx.Err() == nil; n++ {
		tag := callers[n%len(callers)]
		if all[tag] == nil {
			all[tag] = make(chan struct{}, 12)
		}
		l, places := p.th.ForTag(tag), all[tag]
		select {
		case rate = <-p.pace:
		case <-time.After(time.Duration(float64(time.Second) / rate)):
		case <-ctx.Done():
			return
		}
		select {
		case places <- struct{}{}:
			go func() {
				defer func() { <-places }()
				_, _ = l.Acquire(ctx, 1) // an error means that the pod has ended
			}()
		default: // all calls of this tag wait
		}
	}
}
