//go:build gubernator

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	guber "github.com/gubernator-io/gubernator/v2"
	"github.com/sirupsen/logrus"
)

// Gubernator's package imports the clients of etcd and Kubernetes, which take minutes to compile. So it is here only with the build tag
// gubernator, by requirements of its own (gubernator.mod), which make bench uses.
func init() { peers = append(peers, peer{"Gubernator, a node in each pod", openGubernator}) }

// openGubernator makes a node in each pod. They know each other from the start. A pod that is killed makes no calls any more, but its
// node lives on: when the others notice depends on how they find each other, which is not measured.
func openGubernator(ctx context.Context, e *peerEnv) (o peerOpened, err error) {
	quietLog := logrus.New()
	quietLog.SetOutput(io.Discard)
	var nodes []*guber.Daemon
	o.done = func() error {
		for _, n := range nodes {
			n.Close()
		}
		return nil
	}
	var infos []guber.PeerInfo
	for i := range peerPods {
		n, err := guber.SpawnDaemon(ctx, guber.DaemonConfig{
			GRPCListenAddress: "127.0.0.1:0", HTTPListenAddress: "127.0.0.1:0", InstanceID: fmt.Sprint(e.name, i), Logger: quietLog,
		})
		if err != nil {
			return peerOpened{}, errors.Join(err, o.done())
		}
		nodes = append(nodes, n)
		n.PeerInfo = guber.PeerInfo{GRPCAddress: n.GRPCListeners[0].Addr().String(), HTTPAddress: n.HTTPListener.Addr().String()}
		infos = append(infos, n.PeerInfo)
	}
	for _, n := range nodes {
		n.SetPeers(infos)
		o.pods = append(o.pods, waitGubernator(n.V1Server, e))
	}
	return o, nil
}

// waitGubernator asks the pod's own node, which asks the owner of the key. An answer does not say when to come again where a token takes
// less than a millisecond: who is refused asks again after the time in which each goroutine of all pods would get one.
func waitGubernator(node *guber.V1Instance, e *peerEnv) waiter {
	again := max(time.Second*peerPods*peerGoroutines/time.Duration(e.max), shortest)
	return byAsking(func(ctx context.Context) (time.Duration, error) {
		out, err := node.GetRateLimits(ctx, &guber.GetRateLimitsReq{Requests: []*guber.RateLimitReq{{
			Name: "benchmark", UniqueKey: e.name, Hits: 1, Limit: int64(e.max), Burst: int64(e.max / 10), Duration: 1000,
			Algorithm: guber.Algorithm_LEAKY_BUCKET,
		}}})
		switch {
		case err != nil:
			return 0, err
		case out.Responses[0].Error != "":
			return 0, errors.New(out.Responses[0].Error)
		case out.Responses[0].Status == guber.Status_OVER_LIMIT:
			return again, nil
		}
		return 0, nil
	})
}
