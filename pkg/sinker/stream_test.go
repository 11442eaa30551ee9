package sinker_test

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"

	sinkpb "github.com/numaproj/numaflow-go/pkg/apis/proto/sink/v1"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// open opens a stream to the server without the care that a platform takes.
func open(t *testing.T, server *dataplane.Server) sinkpb.Sink_SinkFnClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///sink",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", server.Socket)
		}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	client := sinkpb.NewSinkClient(conn)
	eventually(t, func() bool {
		_, err := client.IsReady(testContext(t), &emptypb.Empty{})
		return err == nil
	}, "the server is ready")
	ctx, cancel := context.WithCancel(testContext(t))
	t.Cleanup(cancel)
	stream, err := client.SinkFn(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(&sinkpb.SinkRequest{Handshake: &sinkpb.Handshake{Sot: true}}))
	_, err = stream.Recv()
	require.NoError(t, err)
	return stream
}

// A stream that is closed in the middle of a batch ends the context of the handler,
// and the server can still send: it must not say that a batch has ended, nor that
// what waited was handled.
func TestSocketAStreamClosedInMidBatchYieldsNoMadeUpAnswers(t *testing.T) {
	for name, opts := range map[string][]sinker.Option{
		"wait": nil,
		"tags": {sinker.WithTag(byKey)},
		"drop": {sinker.WithMaxWait(time.Hour), sinker.OnDenied(sinker.Drop())},
	} {
		t.Run(name, func(t *testing.T) {
			l := throttletest.New(throttletest.Grant(), throttletest.Block())
			h := &handler{}
			stream := open(t, dataplane.Serve(t, sinker.Wrap(h, l, opts...)))
			for i := range 2 {
				require.NoError(t, stream.Send(&sinkpb.SinkRequest{Request: &sinkpb.SinkRequest_Request{Id: strconv.Itoa(i)}}))
			}
			eventually(t, func() bool { return len(h.Taken()) == 1 && l.Waiting() == 1 }, "the second waits")
			require.NoError(t, stream.CloseSend())
			for {
				resp, err := stream.Recv()
				if err != nil {
					break
				}
				require.False(t, resp.GetStatus().GetEot(), "the batch has not ended")
				for _, r := range resp.GetResults() {
					if r.GetId() != "0" {
						require.Equal(t, sinkpb.Status_FAILURE, r.GetStatus())
					}
				}
			}
			eventually(t, func() bool { return l.Waiting() == 0 }, "no wait outlives its stream")
			require.Equal(t, []string{"0"}, h.Taken())
		})
	}
}
