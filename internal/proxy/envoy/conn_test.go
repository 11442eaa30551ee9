package envoy

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
)

// A connection is a stranger's, which does not last, until a call over it has brought the token.
func TestACallMakesItsConnectionLast(t *testing.T) {
	const right = "canary-0123456789"
	set, err := listen.Open(t.Context(), []listen.Addr{{Network: "tcp", Address: "127.0.0.1:0"}}, 1, right, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer set.Close()
	out, err := net.Dial("tcp", set.Addrs()[0])
	require.NoError(t, err)
	defer out.Close()
	in, err := set.Listeners()[0].Accept()
	require.NoError(t, err)
	defer in.Close()
	conn, info, err := connCredentials{insecure.NewCredentials()}.Clone().ServerHandshake(in)
	require.NoError(t, err)
	require.Equal(t, in, conn)
	call := func(token string) error {
		ctx := peer.NewContext(context.Background(), &peer.Peer{AuthInfo: info})
		return checkToken(metadata.NewIncomingContext(ctx, metadata.Pairs("authorization", "Bearer "+token)), listen.NewToken(right))
	}
	require.Error(t, call("wrong"))
	require.Equal(t, 1, set.Strangers())
	require.NoError(t, call(right))
	require.Zero(t, set.Strangers())

	// Envoy sends the calls of several routes over one connection: those without the token end it only if no other comes between.
	for range 2 * maxRefused {
		require.Error(t, call("wrong"))
		require.NoError(t, call(right))
	}
	require.NoError(t, in.SetDeadline(time.Time{}), "it is open")
	for range maxRefused + 1 {
		require.Error(t, call("wrong"))
	}
	require.ErrorIs(t, in.SetDeadline(time.Time{}), net.ErrClosed)
}

// A call without the token whose deadline is distant is not refused when its headers have come, but before it does anything.
func TestACallWithADistantDeadlineDoesNothing(t *testing.T) {
	for wait, passes := range map[time.Duration]bool{LongestWait - time.Second: false, 2 * LongestWait: true} {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		t.Cleanup(cancel)
		ctx, err := guard(listen.NewToken("canary-0123456789"))(ctx, nil)
		if !passes {
			require.ErrorIs(t, err, errToken)
			continue
		}
		require.NoError(t, err)
		_, err = refuseUnary(ctx, nil, nil, nil)
		require.ErrorIs(t, err, errToken)
		require.ErrorIs(t, refuseStream(nil, streamIn{ctx: ctx}, nil, nil), errToken)
	}
}

type streamIn struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // as that of a grpc.ServerStream
}

func (s streamIn) Context() context.Context { return s.ctx }
