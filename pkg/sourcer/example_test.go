package sourcer_test

import (
	"context"
	"fmt"
	"strconv"
	"time"

	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"
	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// numbers is a source that always has more to read.
type numbers struct{ next int }

func (s *numbers) Read(ctx context.Context, r sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	for range r.Count() {
		m := strconv.Itoa(s.next)
		select {
		case out <- sourcesdk.NewMessage([]byte(m), sourcesdk.NewOffsetWithDefaultPartitionId([]byte(m)), time.Now()):
			s.next++
		case <-ctx.Done():
			return
		}
	}
}

func (*numbers) Ack(context.Context, sourcesdk.AckRequest)      {}
func (*numbers) Nack(context.Context, sourcesdk.NackRequest)    {}
func (*numbers) Pending(context.Context) int64                  { return 1_000_000 }
func (*numbers) ActivePartitions(context.Context) []int32       { return sourcesdk.DefaultPartitions() }
func (*numbers) TotalPartitions(context.Context) (total *int32) { return nil }

type readRequest struct {
	count   uint64
	timeout time.Duration
}

func (r readRequest) Count() uint64          { return r.count }
func (r readRequest) TimeOut() time.Duration { return r.timeout }

func ExampleWrap() {
	limiter, err := throttle.New(throttle.Limit{Max: 50, Burst: 5}) // 50 messages a second, 5 at once
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()
	source := sourcer.Wrap(&numbers{}, limiter)

	// A program hands it to the server: sourcesdk.NewServer(source).Start(ctx). The
	// platform then reads like this, and as often as it can.
	messages := make(chan sourcesdk.Message, 500)
	source.Read(context.Background(), readRequest{count: 500, timeout: time.Second}, messages)
	fmt.Println("some were read:", len(messages) > 0)
	fmt.Println("no more than the limit lets through:", len(messages) <= 5)
	fmt.Println("pending, for the autoscaler:", source.Pending(context.Background())) // 50 a second for 20 s
	// Output:
	// some were read: true
	// no more than the limit lets through: true
	// pending, for the autoscaler: 1000
}

func ExampleWrapTransformer() {
	limiter, err := throttle.New(throttle.Limit{Max: 50})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()

	filter := transformsdk.SourceTransformFunc(func(_ context.Context, keys []string, d transformsdk.Datum) transformsdk.Messages {
		if len(d.Value()) == 0 {
			return transformsdk.MessagesBuilder().Append(transformsdk.MessageToDrop(d.EventTime()))
		}
		return transformsdk.MessagesBuilder().Append(transformsdk.NewMessage(d.Value(), d.EventTime()).WithKeys(keys))
	})
	// What the filter drops costs nothing, and what would wait for more than two
	// seconds goes to the edge that asks for the tag "later".
	transformer := sourcer.WrapTransformer(filter, limiter,
		sourcer.ExemptDropped(),
		sourcer.WithMaxWait(2*time.Second), sourcer.OnDenied(sourcer.Forward("later")))

	// A program hands it to the server: transformsdk.NewServer(transformer).Start(ctx).
	d := transformsdk.NewHandlerDatum([]byte("hello"), time.Now(), time.Now(), nil, nil, nil)
	for _, m := range transformer.Transform(context.Background(), []string{"key"}, d) {
		fmt.Println(string(m.Value()))
	}
	// Output: hello
}
