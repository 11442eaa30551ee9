package mapper_test

import (
	"context"
	"fmt"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func ExampleWrap() {
	limiter, err := throttle.New(throttle.Limit{Max: 50}) // 50 tokens a second
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()

	callAPI := mapsdk.MapperFunc(func(_ context.Context, _ []string, d mapsdk.Datum) mapsdk.Messages {
		if len(d.Value()) == 0 {
			return mapsdk.MessagesBuilder().Append(mapsdk.MessageToDrop()) // no call, no token
		}
		return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage(d.Value()))
	})
	handler := mapper.Wrap(callAPI, limiter, mapper.ExemptDropped())

	// A program hands it to the server: mapsdk.NewServer(handler).Start(ctx).
	d := mapsdk.NewHandlerDatum([]byte("hello"), time.Now(), time.Now(), nil, nil, nil)
	for _, m := range handler.Map(context.Background(), []string{"key"}, d) {
		fmt.Println(string(m.Value()))
	}
	// Output: hello
}
