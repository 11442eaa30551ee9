package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"
	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"
)

// work is what a handler does for each message; nil: nothing.
type work func(ctx context.Context)

func (w work) do(ctx context.Context) {
	if w != nil {
		w(ctx)
	}
}

// The handlers: they return what they got, or take it.
type (
	echo          struct{ work }
	batchEcho     struct{ work }
	streamEcho    struct{ work }
	transformEcho struct{ work }
	blackhole     struct{ work }
	spring        struct {
		sourcesdk.Sourcer
		work

		n atomic.Int64
	}
)

func (h echo) Map(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
	h.do(ctx)
	return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage(d.Value()).WithKeys(keys))
}

func (h batchEcho) BatchMap(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
	out := batchmapsdk.BatchResponsesBuilder()
	for d := range in {
		h.do(ctx)
		out = out.Append(batchmapsdk.NewBatchResponse(d.Id()).Append(batchmapsdk.NewMessage(d.Value()).WithKeys(d.Keys())))
	}
	return out
}

func (h streamEcho) MapStream(ctx context.Context, keys []string, d mapstreamsdk.Datum, out chan<- mapstreamsdk.Message) {
	defer close(out)
	h.do(ctx)
	out <- mapstreamsdk.NewMessage(d.Value()).WithKeys(keys)
}

func (h transformEcho) Transform(ctx context.Context, keys []string, d transformsdk.Datum) transformsdk.Messages {
	h.do(ctx)
	return transformsdk.MessagesBuilder().Append(transformsdk.NewMessage(d.Value(), d.EventTime()).WithKeys(keys))
}

func (h blackhole) Sink(ctx context.Context, in <-chan sinksdk.Datum) sinksdk.Responses {
	out := sinksdk.ResponsesBuilder()
	for d := range in {
		h.do(ctx)
		out = out.Append(sinksdk.ResponseOK(d.ID()))
	}
	return out
}

// Read never runs dry.
func (s *spring) Read(ctx context.Context, r sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	value := message().Value
	for range r.Count() {
		s.do(ctx)
		offset := strconv.AppendInt(nil, s.n.Add(1), 10)
		out <- sourcesdk.NewMessage(value, sourcesdk.NewOffsetWithDefaultPartitionId(offset), time.Now())
	}
}

func (*spring) Ack(context.Context, sourcesdk.AckRequest)      {}
func (*spring) Nack(context.Context, sourcesdk.NackRequest)    {}
func (*spring) Pending(context.Context) int64                  { return 0 }
func (*spring) ActivePartitions(context.Context) []int32       { return sourcesdk.DefaultPartitions() }
func (*spring) TotalPartitions(context.Context) (total *int32) { return nil }

// A service is what handlers call.
type service struct {
	server *http.Server
	client *http.Client
	url    string

	called, failed atomic.Int64
}

// startService starts one on loopback.
func startService(ctx context.Context) (*service, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the service: %w", err)
	}
	transport := &http.Transport{MaxIdleConns: inFlight, MaxIdleConnsPerHost: inFlight}
	s := &service{client: &http.Client{Transport: transport}, url: "http://" + listener.Addr().String()}
	s.server = &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }),
	}
	go func() { _ = s.server.Serve(listener) }() // it ends with close
	return s, nil
}

// call makes one request.
func (s *service) call(ctx context.Context) {
	s.called.Add(1)
	if err := s.try(ctx); err != nil && ctx.Err() == nil {
		s.failed.Add(1)
	}
}

func (s *service) try(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return err
}

func (s *service) close() {
	s.client.CloseIdleConnections()
	s.server.Close()
}
