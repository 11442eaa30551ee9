package handlertest_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/pkg/handlertest"
	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var upper = mapsdk.MapperFunc(func(_ context.Context, _ []string, d mapsdk.Datum) mapsdk.Messages {
	return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage(bytes.ToUpper(d.Value())))
})

// A test of a mapper, with the limit in front of it.
func ExampleStart() { //nolint:testableexamples // a test has a testing.T of its own
	_ = func(t *testing.T) { // func TestUpper(t *testing.T)
		limiter, err := throttle.New(throttle.Limit{Max: 100})
		if err != nil {
			t.Fatal(err)
		}
		defer limiter.Close()
		h := handlertest.Start(t, mapper.Wrap(upper, limiter))
		results, err := h.Map(t.Context(), handlertest.Message{Value: []byte("hello")})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(results[0][0].Value); got != "HELLO" {
			t.Errorf("got %s", got)
		}
	}
}

// Any process that listens on a socket will do; here it is this one.
func ExampleDial() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	server := mapsdk.NewServer(upper, mapsdk.WithSockAddr(filepath.Join(dir, "map.sock")), mapsdk.WithServerInfoFilePath(filepath.Join(dir, "info")))
	ended := make(chan error)
	go func() { ended <- server.Start(ctx) }()

	h, err := handlertest.Dial(ctx, filepath.Join(dir, "map.sock"))
	if err != nil {
		log.Fatal(err)
	}
	results, err := h.Map(ctx, handlertest.Message{Value: []byte("a")}, handlertest.Message{Value: []byte("b")})
	fmt.Printf("%s %s %v\n", results[0][0].Value, results[1][0].Value, err)
	fmt.Println(h.Close())
	stop()
	fmt.Println(<-ended, os.RemoveAll(dir))
	// Output:
	// A B <nil>
	// <nil>
	// <nil> <nil>
}
