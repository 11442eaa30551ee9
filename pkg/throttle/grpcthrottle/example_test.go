package grpcthrottle_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/grpcthrottle"
)

// A call that can't get its tokens in time is not sent.
func ExampleNew() {
	limiter, err := throttle.New(throttle.Limit{Max: 10, Per: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = limiter.Close() }()
	throttled, err := grpcthrottle.New(limiter)
	if err != nil {
		fmt.Println(err)
		return
	}
	options := append(throttled.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient("dns:///api.example.com:443", options...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = pb.NewTestServiceClient(conn).EmptyCall(ctx, &pb.Empty{})
	fmt.Println(status.Code(err) == codes.ResourceExhausted, retryIn(err) > time.Minute)
	// Output: true true
}
