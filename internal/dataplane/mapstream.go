package dataplane

import (
	"context"

	"google.golang.org/grpc"

	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
)

// A MapStream is one open stream to a stream mapper. It answers a message with any number of results, one after the other, and an
// end-of-transmission mark. All its methods are safe for concurrent use.
type MapStream struct {
	flow[*mappb.MapRequest, *mappb.MapResponse]
}

// DialMapStream opens a stream to the stream mapper at socketPath, as Dial does to
// a unary one.
func DialMapStream(ctx context.Context, socketPath string, opts ...Option) (*MapStream, error) {
	return dial(ctx, "map stream", socketPath, opts, func(ctx context.Context, conn *grpc.ClientConn, s settings) (*MapStream, error) {
		o, err := openMap(ctx, conn)
		if err != nil {
			return nil, err
		}
		m := &MapStream{}
		m.start(o, s, inspectStreamed, FaultMissingEOT)
		return m, nil
	})
}

// Do sends one message and returns all its results, once their end is there: nil
// if there were none. Otherwise it is like Map.Do. Results that came before the
// stream broke are not returned: the platform sends the message again.
func (m *MapStream) Do(ctx context.Context, msg Message) ([]Result, error) {
	_, parts, err := m.do(ctx, func(id string) *mappb.MapRequest { return newMapRequest(id, msg) })
	if err != nil {
		return nil, err
	}
	var all []Result
	for _, resp := range parts {
		all = append(all, results(resp)...)
	}
	return all, nil
}

// inspectStreamed refuses an end-of-transmission mark that carries results, for the
// platform would not look at them.
func inspectStreamed(resp *mappb.MapResponse) (id string, last bool, err error) {
	id, last = resp.GetId(), resp.GetStatus().GetEot()
	switch {
	case resp.GetHandshake() != nil:
		return "", false, &ProtocolError{Fault: FaultHandshake}
	case last && len(resp.GetResults()) > 0:
		return "", false, &ProtocolError{Fault: FaultStatus, IDs: []string{id}}
	}
	return id, last, nil
}
