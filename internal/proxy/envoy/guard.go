package envoy

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
)

var errToken = status.Error(codes.Unauthenticated, "the token is missing or wrong, allowed: authorization: Bearer TOKEN")

// refusedKey is in the context of a call without the token that goes on because its connection ends.
type refusedKey struct{}

// guard returns what admits or refuses a call when its headers have come, before anything is read of its message.
//
// gRPC does not cancel the context of a call that is refused here, which then remains until its deadline. So the connection of a call with a
// distant deadline is closed, which cancels the contexts of its calls; the call itself is refused by the interceptors.
func guard(token listen.Token) tap.ServerInHandle {
	return func(ctx context.Context, _ *tap.Info) (context.Context, error) {
		err := checkToken(ctx, token)
		if deadline, ok := ctx.Deadline(); err == nil || !ok || time.Until(deadline) <= LongestWait {
			return ctx, err
		}
		connOf(ctx).close()
		return context.WithValue(ctx, refusedKey{}, true), nil
	}
}

func checkToken(ctx context.Context, token listen.Token) error {
	md, _ := metadata.FromIncomingContext(ctx)
	conn := connOf(ctx)
	if token.Matches(md.Get("authorization")) {
		conn.admit()
		return nil
	}
	conn.refuse()
	return errToken
}

func refuseUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if ctx.Value(refusedKey{}) != nil {
		return nil, errToken
	}
	return handler(ctx, req)
}

func refuseStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if stream.Context().Value(refusedKey{}) != nil {
		return errToken
	}
	return handler(srv, stream)
}
