package permits_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/permits"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Both servers draw from the same limits.
func TestBothServers(t *testing.T) {
	c := permits.Config{
		Limits: proxy.LimitConfig{
			Pool:     numathrottle.Config{Limit: throttle.Limit{Max: 1000, Burst: 100}, Store: "memory://both", Pool: "p", ID: "i"},
			InFlight: 1,
		},
		Serving:   proxy.Serving{Listen: "127.0.0.1:0", Grace: time.Second},
		RLSListen: "127.0.0.1:0", RLSWait: 10 * time.Second, Logger: discard(),
	}
	var mu sync.Mutex
	var addrs []string
	two := make(chan struct{}, 2)
	c.Ready = func(at []string) {
		mu.Lock()
		defer mu.Unlock()
		addrs = append(addrs, at...)
		two <- struct{}{}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- permits.Run(ctx, c) }()
	<-two
	<-two
	api, rls := addrs[0], addrs[1]
	post := func(at, path, body string) (int, string, error) {
		res, err := http.Post("http://"+at+path, "application/json", strings.NewReader(body))
		if err != nil {
			return 0, "", err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return res.StatusCode, string(text), err
	}
	if _, _, err := post(api, "/v1/none", `{}`); err != nil {
		api, rls = rls, api // they may become ready in any order
	}
	require.Eventually(t, func() bool {
		status, text, err := post(api, "/v1/acquire", `{"timeout_seconds":5,"lease_seconds":1}`)
		return err == nil && (status == 200 || strings.Contains(text, "in_flight"))
	}, 10*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		_, text, err := post(api, "/v1/acquire", `{"timeout_seconds":0}`)
		return err == nil && strings.Contains(text, `"reason":"in_flight"`)
	}, 10*time.Second, 10*time.Millisecond, "the limit on calls in flight counts, too")

	conn, err := grpc.NewClient(rls, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	res, err := ratelimit.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), &ratelimit.RateLimitRequest{
		Descriptors: []*descriptor.RateLimitDescriptor{{Entries: []*descriptor.RateLimitDescriptor_Entry{{Key: "k", Value: "v"}}}},
	})
	require.NoError(t, err)
	require.Equal(t, ratelimit.RateLimitResponse_OK, res.GetOverallCode(), "it waits until the lease of the permit is over")
	stop()
	require.NoError(t, <-ended)
}

func TestAServerThatFailsEndsTheOther(t *testing.T) {
	err := permits.Run(t.Context(), permits.Config{
		Limits:    proxy.LimitConfig{Pool: numathrottle.Config{Limit: throttle.Limit{Max: 1}, Store: "memory://fails", Pool: "p", ID: "i"}},
		Serving:   proxy.Serving{Listen: "127.0.0.1:0", Grace: 50 * time.Millisecond},
		RLSListen: "unix:/no/such/folder/s", Logger: discard(),
	})
	require.ErrorContains(t, err, "unix:/no/such/folder/s")
}

func TestValidate(t *testing.T) {
	const canary = "hunter2-canary"
	for want, c := range map[string]permits.Config{
		"listen has :80, which can be reached from elsewhere, and there is no token":    {Serving: proxy.Serving{Listen: ":80"}},
		"rlsListen has :81, which can be reached from elsewhere, and there is no token": {RLSListen: ":81"},
		"token has 14 bytes, and listen has :80, which can be reached from elsewhere, allowed: at least 16 bytes": {
			Serving: proxy.Serving{Token: numathrottle.NewSecret(canary), Listen: "127.0.0.1:1,:80"},
		},
		"token has 14 bytes, and rlsListen has :81": {Serving: proxy.Serving{Token: numathrottle.NewSecret(canary)}, RLSListen: ":81"},
		`hostNames is "*"`:                          {Serving: proxy.Serving{HostNames: "*"}},
		"pauseToken has 14 bytes, and listen has :80, which can be reached from elsewhere, allowed: at least 16 bytes": {
			Serving: proxy.Serving{Listen: ":80", TokenFile: "f"}, PauseToken: numathrottle.NewSecret(canary),
		},
		"pauseTokenFile is set, and so is pauseToken": {PauseToken: numathrottle.NewSecret(canary), PauseTokenFile: "f"},
		"pauseTokenFile is \"/no/such\"":              {PauseTokenFile: "/no/such"},
		"tokenFile is set, and so is token": {
			Serving: proxy.Serving{Token: numathrottle.NewSecret(canary), TokenFile: "/x"},
		},
		"tokenFile is \"/no/such\"": {Serving: proxy.Serving{TokenFile: "/no/such"}},
		`maxWait is "2h"`:           {MaxWait: 2 * time.Hour},
		`inFlight is "-1"`:          {Limits: proxy.LimitConfig{InFlight: -1}},
		"store": {
			Limits: proxy.LimitConfig{Pool: numathrottle.Config{Limit: throttle.Limit{Max: 1}, Store: "ftp://" + canary + "@x"}},
		},
	} {
		err := permits.Run(t.Context(), c)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), canary)
	}
}
