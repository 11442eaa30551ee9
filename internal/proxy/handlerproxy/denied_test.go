package handlerproxy_test

import (
	"testing"
	"time"

	commonpb "github.com/numaproj/numaflow-go/pkg/apis/proto/common"
	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/handlerproxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A message that is forwarded takes its metadata along, and not the platform's own.
func TestForwardKeepsTheUsersMetadata(t *testing.T) {
	c := configured(t, handlerproxy.Map, throttletest.New(throttletest.Deny(nil)))
	c.OnDenied, c.MaxWait = "forward later", time.Second
	stream := mapCall(t, serve(t, c, echoMap).waitSocket(t))
	group := func(value string) map[string]*commonpb.KeyValueGroup {
		return map[string]*commonpb.KeyValueGroup{"g": {KeyValue: map[string][]byte{"k": []byte(value)}}}
	}
	require.NoError(t, stream.Send(&mappb.MapRequest{Id: "1", Request: &mappb.MapRequest_Request{
		Metadata: &commonpb.Metadata{PreviousVertex: "in", SysMetadata: group("sys"), UserMetadata: group("user")},
	}}))
	resp, err := stream.Recv()
	require.NoError(t, err)
	got := resp.GetResults()[0].GetMetadata()
	require.Equal(t, []byte("user"), got.GetUserMetadata()["g"].GetKeyValue()["k"])
	require.Empty(t, got.GetSysMetadata())
	require.Empty(t, got.GetPreviousVertex())
}

// An asking limiter notes the tag that was asked for last.
type asking struct {
	*throttletest.Limiter
	tag string
}

func (a *asking) ForTag(tag string) throttle.Limiter {
	a.tag = tag
	return a.Limiter
}

func (a *asking) ForLevels(first, tag string) throttle.Limiter {
	return a.ForTag(first + " and " + tag)
}

func TestCostsAndTags(t *testing.T) {
	drawn := func(change func(c *handlerproxy.Config)) *asking {
		l := &asking{Limiter: grantAll()}
		c := configured(t, handlerproxy.Map, l)
		change(&c)
		m, err := dataplane.Dial(within(t), serve(t, c, echoMap).waitSocket(t))
		require.NoError(t, err)
		_, err = m.Do(within(t), message(`{"usage":{"tokens":11.5},"list":[1,5],"user":{"tenant":"acme"}}`))
		require.NoError(t, err)
		require.NoError(t, m.Close())
		return l
	}
	for cost, want := range map[string]int{
		"": 1, "3": 3, "bytes/4": 16, "header tokens": 7, "header missing": 1, "json usage.tokens": 12, "json usage.missing": 1, "json list.1": 5,
	} {
		require.Equal(t, want, drawn(func(c *handlerproxy.Config) { c.Cost = cost }).Used(), "cost %q", cost)
	}
	for tag, want := range map[string]string{
		"": "", "header tokens": "7", "key 1": "k2", "key 2": "", "json user.tenant": "acme", "json user.none": "",
		"[header tokens, key 1]": "7 and 7/k2", "[key 1, json user.tenant]": "k2 and k2/acme", "[key 1, key 2]": "k2", "[json user.none, key 1]": "",
	} {
		require.Equal(t, want, drawn(func(c *handlerproxy.Config) { c.Tag = tag }).tag, "tag %q", tag)
	}
}
