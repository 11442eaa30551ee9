package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	"github.com/redis/go-redis/v9"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/natsstore"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/redisstore"
	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A job is a mapper process's task, passed in its environment because a store's URL may hold a password.
type job struct {
	ID      string        `json:"id"`
	Pool    string        `json:"pool"`
	Store   string        `json:"store"`
	Service string        `json:"service"`
	Socket  string        `json:"socket"`
	Info    string        `json:"info"`
	Max     int           `json:"max"`
	Burst   int           `json:"burst"`
	Lease   time.Duration `json:"lease"`
}

const jobVariable = "NUMATHROTTLE_DEMO_JOB"

// A report is a mapper process's report on itself, a line of JSON on its standard output.
type report struct {
	Granted  int64         `json:"granted"`
	Share    float64       `json:"share"`
	PoolSize int           `json:"poolSize"`
	Agreed   bool          `json:"agreed"`
	Frozen   time.Duration `json:"frozen"`
}

const reportEvery = 100 * time.Millisecond

// work is the whole life of one mapper process.
func work(encoded string) error {
	var j job
	if err := json.Unmarshal([]byte(encoded), &j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	store, closeStore, err := openStore(j.Store, j.Lease)
	if err != nil {
		return err
	}
	defer closeStore()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	member, err := consensus.Join(ctx, store, j.Pool, consensus.WithID(j.ID), consensus.WithLease(j.Lease),
		consensus.WithOnStoreLoss(consensus.Stop), consensus.WithLogger(log))
	if err != nil {
		return err
	}
	limiter, err := throttle.New(throttle.Limit{Max: j.Max, Burst: j.Burst}, throttle.WithSharer(member), throttle.OnClose(member.Leave))
	if err != nil {
		return err
	}
	go func() {
		for range time.Tick(reportEvery) {
			v, st := member.View(), limiter.Status()
			tell(os.Stdout, report{
				Granted: st.Granted, Share: v.Share.Fraction(), PoolSize: v.PoolSize,
				Agreed: v.Agreed, Frozen: v.Frozen,
			})
		}
	}()
	server := mapsdk.NewServer(mapper.Wrap(caller(j.Service), limiter),
		mapsdk.WithSockAddr(j.Socket), mapsdk.WithServerInfoFilePath(j.Info))
	if err := server.Start(ctx); err != nil {
		return fmt.Errorf("mapper server: %w", err)
	}
	return limiter.Close() // leaves the pool, after the server has stopped
}

// tell writes a report as a line, and ignores errors.
func tell(w io.Writer, r report) {
	line, err := json.Marshal(r)
	if err == nil {
		_, _ = w.Write(append(line, '\n'))
	}
}

// caller returns the handler: it sends the message to the service and answers with the number of words in it. The wrapper has already drawn
// its token.
func caller(url string) mapsdk.Mapper {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: 30 * time.Second}
	return mapsdk.MapperFunc(func(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
		granted := time.Now()
		words, err := call(ctx, client, url, granted, d.Value())
		if err != nil {
			panic(fmt.Sprintf("call the service: %v", err)) //nolint:forbidigo // no answer: the message comes again
		}
		return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage([]byte(words)).WithKeys(keys))
	})
}

func call(ctx context.Context, c *http.Client, url string, granted time.Time, body []byte) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set(grantedHeader, strconv.FormatInt(granted.UnixNano(), 10))
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return "", err
	}
	if resp.StatusCode == http.StatusTooManyRequests {
		return "refused", nil // the service counts it, and the verdict reads the count
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %s", resp.Status)
	}
	return string(answer), nil
}

// openStore connects to the store of a URL. All processors of the demo have the same lease, so the store need not wait for longer ones.
func openStore(url string, lease time.Duration) (driver.Store, func(), error) {
	if strings.HasPrefix(url, "redis://") || strings.HasPrefix(url, "rediss://") {
		o, err := redis.ParseURL(url)
		if err != nil {
			return nil, nil, fmt.Errorf("DEMO_STORE is not a Redis URL") //nolint:err113 // the cause prints the password
		}
		o.MaxRetries, o.ContextTimeoutEnabled = -1, true
		client := redis.NewClient(o)
		return redisstore.New(client, redisstore.WithLongestLease(lease)), func() { _ = client.Close() }, nil
	}
	nc, err := nats.Connect(url, natsstore.ConnectOptions()...)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to NATS: %w", err)
	}
	store, err := natsstore.New(nc, natsstore.WithLongestLease(lease))
	return store, nc.Close, err
}
