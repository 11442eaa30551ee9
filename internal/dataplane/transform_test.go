package dataplane

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	transformpb "github.com/numaproj/numaflow-go/pkg/apis/proto/sourcetransform/v1"
	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
)

func dialTransform(t *testing.T, socket string, opts ...Option) *Transform {
	t.Helper()
	return dialled[*Transform](t)(DialTransform(testContext(t), socket, opts...))
}

func TestTransformCarriesWhatTheHandlerReturned(t *testing.T) {
	event := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	delay, deliveries, reason := uint64(1500), uint32(3), "later"
	m := dialTransform(t, sdkserver.Start(t, transformsdk.SourceTransformFunc(
		func(_ context.Context, keys []string, d transformsdk.Datum) transformsdk.Messages {
			switch string(d.Value()) {
			case "drop":
				return transformsdk.MessagesBuilder().Append(transformsdk.MessageToDrop(d.EventTime()))
			case "nack":
				return transformsdk.MessagesBuilder().Append(transformsdk.MessageToNack(d.EventTime(),
					&transformsdk.NackOptions{Delay: &delay, MaxDeliveries: &deliveries, Reason: &reason}))
			case "none":
				return transformsdk.MessagesBuilder()
			default:
				return transformsdk.MessagesBuilder().Append(
					transformsdk.NewMessage(d.Value(), d.EventTime().Add(time.Hour)).WithKeys(keys).WithTags([]string{"t"}))
			}
		})).Socket, WithConcurrency(1))
	for value, want := range map[string]Result{
		"drop": {Tags: []string{transformsdk.DROP}, Drop: true, EventTime: event},
		"nack": {Tags: []string{transformsdk.NACK}, Nack: true, EventTime: event, NackOptions: &NackOptions{
			Delay: 1500 * time.Millisecond, MaxDeliveries: 3, Reason: "later",
		}},
		"else": {Keys: []string{"k"}, Value: []byte("else"), Tags: []string{"t"}, EventTime: event.Add(time.Hour)},
	} {
		got, err := m.Do(testContext(t), Message{Keys: []string{"k"}, Value: []byte(value), EventTime: event})
		require.NoError(t, err, value)
		require.Equal(t, []Result{want}, got, value)
	}
	_, err := m.Do(testContext(t), Message{Value: []byte("none")})
	requireFault(t, err, FaultEmpty, "0-4")
	require.Equal(t, Stats{Sent: 4, Answered: 3, Failed: 1}, m.Stats())
}

func TestTransformFaultsBreakTheStreamAndNameTheID(t *testing.T) {
	ok := func(id string) *transformpb.SourceTransformResponse {
		return &transformpb.SourceTransformResponse{Id: id, Results: []*transformpb.SourceTransformResponse_Result{
			{EventTime: timestamppb.Now()},
		}}
	}
	for name, c := range map[string]struct {
		send  []*transformpb.SourceTransformResponse
		fault Fault
		ids   []string
	}{
		"duplicate": {[]*transformpb.SourceTransformResponse{ok("0-1"), ok("0-1")}, FaultDuplicateID, []string{"0-1"}},
		"unknown":   {[]*transformpb.SourceTransformResponse{ok("1-1")}, FaultUnknownID, []string{"1-1"}},
		"missing":   {nil, FaultMissingID, []string{"0-1"}},
		"no event time": {
			[]*transformpb.SourceTransformResponse{{Id: "0-1", Results: []*transformpb.SourceTransformResponse_Result{{}}}},
			FaultEventTime,
			[]string{"0-1"},
		},
		"second handshake": {
			[]*transformpb.SourceTransformResponse{{Handshake: &transformpb.Handshake{Sot: true}}}, FaultHandshake, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeTransform{}
			f.answer = func(_ *transformpb.SourceTransformRequest, send func(*transformpb.SourceTransformResponse)) bool {
				for _, r := range c.send {
					send(r)
				}
				return c.fault != FaultMissingID
			}
			m := dialTransform(t, startScripted(t, f), WithConcurrency(2))
			_, _ = m.Do(testContext(t), Message{})
			awaitBroken(t, m.Broken())
			requireFault(t, m.Close(), c.fault, c.ids...)
		})
	}
}
