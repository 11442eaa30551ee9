package dataplane

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
	sinkpb "github.com/numaproj/numaflow-go/pkg/apis/proto/sink/v1"
	sourcepb "github.com/numaproj/numaflow-go/pkg/apis/proto/source/v1"
	transformpb "github.com/numaproj/numaflow-go/pkg/apis/proto/sourcetransform/v1"
)

// A broken is what a server answers, and the fault that it is.
type broken[Resp any] struct {
	send  []*Resp
	ends  bool // the server ends the stream after it
	fault Fault
	ids   []string
}

// sends is a fault that names these IDs, separated by spaces; "none" is no ID.
func sends[Resp any](fault Fault, ids string, send ...*Resp) broken[Resp] {
	b := broken[Resp]{send: send, fault: fault}
	if ids != "none" {
		b.ids = strings.Split(ids, " ")
	}
	return b
}

// ends is sends, and the server ends the stream.
func ends[Resp any](fault Fault, ids string, send ...*Resp) broken[Resp] {
	b := sends(fault, ids, send...)
	b.ends = true
	return b
}

// answers is what a server does with a request; it ends the stream when that is false.
type answers[Req, Resp any] = func(req *Req, send func(*Resp)) bool

// A called stream is one with a call over it.
type called struct {
	stream interface{ Close() error }
	over   <-chan struct{}
	call   func() error
}

// breaks requires for each case that the stream breaks with the fault, which the next call and Close tell. A case is played when the server has
// a whole request; open connects to a server with these answers.
func breaks[Req, Resp any](t *testing.T, whole func(*Req) bool, open func(t *testing.T, answer answers[Req, Resp]) called, cases map[string]broken[Resp]) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := open(t, func(req *Req, send func(*Resp)) bool {
				if !whole(req) {
					return true
				}
				for _, r := range c.send {
					send(r)
				}
				return !c.ends
			})
			_ = s.call() // what comes after the end spoils only what follows
			awaitBroken(t, s.over)
			requireFault(t, s.call(), c.fault, c.ids...)
			require.ErrorIs(t, s.stream.Close(), ErrBroken)
			if counted, ok := s.stream.(interface{ Stats() Stats }); ok {
				require.Equal(t, counted.Stats().Sent, counted.Stats().Answered+counted.Stats().Failed)
			}
		})
	}
}

func every[Req any](*Req) bool { return true }

func reply(id string) *mappb.MapResponse {
	return &mappb.MapResponse{Id: id, Results: []*mappb.MapResponse_Result{{Value: []byte(id)}}}
}

// eotOf is the mark that ends a batch, or the results of a streamed message.
func eotOf(id string) *mappb.MapResponse {
	return &mappb.MapResponse{Id: id, Status: &mappb.TransmissionStatus{Eot: true}}
}

var mapHello = &mappb.MapResponse{Handshake: &mappb.Handshake{Sot: true}}

// A map's stream has the faults of an ID for a transformer's, too, and that of a batch map for a sink's: their code is one.
func TestFaultsOfAMap(t *testing.T) {
	breaks(t, every[mappb.MapRequest],
		func(t *testing.T, answer answers[mappb.MapRequest, mappb.MapResponse]) called {
			f := &fakeMap{}
			f.answer = answer
			m := dialMap(t, startScripted(t, f), WithConcurrency(4))
			return called{m, m.Broken(), func() error { _, err := m.Do(testContext(t), Message{}); return err }}
		}, map[string]broken[mappb.MapResponse]{
			"duplicate":              sends(FaultDuplicateID, "0-1", reply("0-1"), reply("0-1")),
			"unknown: never sent":    sends(FaultUnknownID, "0-7", reply("0-7")),
			"unknown: another place": sends(FaultUnknownID, "3-1", reply("3-1")),
			"unknown: no such place": sends(FaultUnknownID, "99-1", reply("99-1")),
			"unknown: empty":         sends(FaultUnknownID, "", reply("")),
			"unknown: foreign":       sends(FaultUnknownID, "vertex-1-0", reply("vertex-1-0")),
			"missing":                ends[mappb.MapResponse](FaultMissingID, "0-1"),
			"second handshake":       sends(FaultHandshake, "none", mapHello),
			"end of transmission":    sends(FaultStatus, "0-1", eotOf("0-1")),
		})
}

func TestFaultsOfAMapStream(t *testing.T) {
	both := reply("0-1")
	both.Status = eotOf("").GetStatus()
	breaks(t, every[mappb.MapRequest],
		func(t *testing.T, answer answers[mappb.MapRequest, mappb.MapResponse]) called {
			f := &fakeMap{}
			f.answer = answer
			m := dialStreamed(t, startScripted(t, f), WithConcurrency(4))
			return called{m, m.Broken(), func() error { _, err := m.Do(testContext(t), Message{}); return err }}
		}, map[string]broken[mappb.MapResponse]{
			"result after the end": sends(FaultAfterEOT, "0-1", reply("0-1"), eotOf("0-1"), reply("0-1")),
			"second end":           sends(FaultDuplicateID, "0-1", eotOf("0-1"), eotOf("0-1")),
			"unknown: end":         sends(FaultUnknownID, "", eotOf("")),
			"end without the mark": ends(FaultMissingEOT, "0-1", reply("0-1")),
			"results in the mark":  sends(FaultStatus, "0-1", both),
			"second handshake":     sends(FaultHandshake, "none", mapHello),
		})
}

func TestFaultsOfABatchMap(t *testing.T) {
	breaks(t, func(req *mappb.MapRequest) bool { return req.GetStatus().GetEot() },
		func(t *testing.T, answer answers[mappb.MapRequest, mappb.MapResponse]) called {
			f := &fakeMap{}
			f.answer = answer
			m := dialBatch(t, startScripted(t, f))
			return called{m, m.Broken(), func() error { _, err := m.Do(testContext(t), messages("a", "b")); return err }}
		}, map[string]broken[mappb.MapResponse]{
			"duplicate":                    sends(FaultDuplicateID, "1-1", reply("1-1"), reply("1-1")),
			"unknown":                      sends(FaultUnknownID, "1-2", reply("1-2")),
			"missing: all":                 sends(FaultMissingID, "1-0 1-1", eotOf("")),
			"missing: one":                 sends(FaultMissingID, "1-1", reply("1-0"), eotOf("")),
			"stream ends in the batch":     ends(FaultMissingID, "1-1", reply("1-0")),
			"stream ends without the mark": ends(FaultMissingEOT, "1-0 1-1", reply("1-0"), reply("1-1")),
			"mark with an ID":              sends(FaultStatus, "1-0", eotOf("1-0")),
			"second handshake":             sends(FaultHandshake, "none", mapHello),
			"a result after the end":       sends(FaultAfterEOT, "1-0", reply("1-0"), reply("1-1"), eotOf(""), reply("1-0")),
			"a second end":                 sends(FaultUnexpectedEOT, "none", reply("1-0"), reply("1-1"), eotOf(""), eotOf("")),
			"an unknown after the end":     sends(FaultUnknownID, "9-0", reply("1-0"), reply("1-1"), eotOf(""), reply("9-0")),
		})
}

func TestFaultsOfATransformer(t *testing.T) {
	type response = transformpb.SourceTransformResponse
	breaks(t, every[transformpb.SourceTransformRequest],
		func(t *testing.T, answer answers[transformpb.SourceTransformRequest, response]) called {
			f := &fakeTransform{}
			f.answer = answer
			m := dialled[*Transform](t)(DialTransform(testContext(t), startScripted(t, f), WithConcurrency(2)))
			return called{m, m.Broken(), func() error { _, err := m.Do(testContext(t), Message{}); return err }}
		}, map[string]broken[response]{
			"no event time":    sends(FaultEventTime, "0-1", &response{Id: "0-1", Results: []*transformpb.SourceTransformResponse_Result{{}}}),
			"nothing":          sends(FaultEmpty, "0-1", &response{Id: "0-1"}),
			"second handshake": sends(FaultHandshake, "none", &response{Handshake: &transformpb.Handshake{Sot: true}}),
		})
}

func TestFaultsOfASink(t *testing.T) {
	of := func(r ...*sinkpb.SinkResponse_Result) *sinkpb.SinkResponse { return &sinkpb.SinkResponse{Results: r} }
	ok := &sinkpb.SinkResponse_Result{Id: "1-0"}
	eot := &sinkpb.SinkResponse{Status: &sinkpb.TransmissionStatus{Eot: true}}
	breaks(t, func(req *sinkpb.SinkRequest) bool { return req.GetStatus().GetEot() },
		func(t *testing.T, answer answers[sinkpb.SinkRequest, sinkpb.SinkResponse]) called {
			f := &fakeSink{}
			f.answer = answer
			k := dialSink(t, startScripted(t, f))
			return called{k, k.Broken(), func() error { _, err := k.Do(testContext(t), messages("a")); return err }}
		}, map[string]broken[sinkpb.SinkResponse]{
			"no result":           sends(FaultMissingID, "1-0", eot),
			"the same twice":      sends(FaultDuplicateID, "1-0", of(ok, ok)),
			"results in the mark": sends(FaultStatus, "1-0", &sinkpb.SinkResponse{Results: of(ok).GetResults(), Status: eot.GetStatus()}),
			"unknown status":      sends(FaultStatus, "1-0", of(&sinkpb.SinkResponse_Result{Id: "1-0", Status: 77})),
			"second handshake":    sends(FaultHandshake, "none", &sinkpb.SinkResponse{Handshake: &sinkpb.Handshake{Sot: true}}),
		})
}

func TestFaultsOfASource(t *testing.T) {
	type response = sourcepb.ReadResponse
	message := func(offset string) *response {
		return &response{Status: &sourcepb.ReadResponse_Status{}, Result: &sourcepb.ReadResponse_Result{
			Offset: &sourcepb.Offset{Offset: []byte(offset)}, EventTime: timestamppb.Now(),
		}}
	}
	eot := &response{Status: &sourcepb.ReadResponse_Status{Eot: true}}
	noTime, both := message("a"), message("a")
	noTime.Result.EventTime = nil
	both.Status.Eot = true
	breaks(t, every[sourcepb.ReadRequest],
		func(t *testing.T, answer answers[sourcepb.ReadRequest, response]) called {
			f := &fakeSource{}
			f.reads.answer = answer
			s := dialSource(t, startScripted(t, f))
			return called{s, s.Broken(), func() error { _, err := s.Read(testContext(t), 2, 0); return err }}
		}, map[string]broken[response]{
			"too many":             sends(FaultTooMany, "Yw==-0", message("a"), message("b"), message("c")),
			"same offset twice":    sends(FaultDuplicateID, "YQ==-0", message("a"), message("a")),
			"empty offset":         sends(FaultOffset, "1", message("")),
			"no event time":        sends(FaultEventTime, "YQ==-0", noTime),
			"stream ends":          ends(FaultMissingEOT, "1", message("a")),
			"after the end":        sends(FaultAfterEOT, "YQ==-0", eot, message("a")),
			"second end":           sends(FaultUnexpectedEOT, "none", eot, eot),
			"failure":              sends(FaultStatus, "1", &response{Status: &sourcepb.ReadResponse_Status{Code: sourcepb.ReadResponse_Status_FAILURE}}),
			"a message in the end": sends(FaultStatus, "YQ==-0", both),
			"nothing":              sends(FaultEmpty, "1", &response{Status: &sourcepb.ReadResponse_Status{}}),
			"second handshake":     sends(FaultHandshake, "none", &response{Handshake: &sourcepb.Handshake{Sot: true}}),
		})
	success := &sourcepb.AckResponse{Result: &sourcepb.AckResponse_Result{Success: &emptypb.Empty{}}}
	breaks(t, every[sourcepb.AckRequest],
		func(t *testing.T, answer answers[sourcepb.AckRequest, sourcepb.AckResponse]) called {
			f := &fakeSource{}
			f.acks.answer = answer
			s := dialSource(t, startScripted(t, f))
			return called{s, s.acks.Broken(), func() error { return s.Ack(testContext(t), []Offset{{Value: []byte("x"), Partition: 7}}) }}
		}, map[string]broken[sourcepb.AckResponse]{
			"no answer":     ends[sourcepb.AckResponse](FaultMissingID, "eA==-7"),
			"two answers":   sends(FaultUnasked, "none", success, success),
			"empty answer":  sends(FaultEmpty, "eA==-7", &sourcepb.AckResponse{}),
			"and handshake": sends(FaultHandshake, "none", &sourcepb.AckResponse{Handshake: &sourcepb.Handshake{Sot: true}}),
		})
}

func TestHandshakesAreChecked(t *testing.T) {
	ctx := testContext(t)
	began := func(first *mappb.MapResponse) string {
		f := &fakeMap{}
		f.first = first
		return startScripted(t, f)
	}
	source := &fakeSource{}
	source.reads.first = &sourcepb.ReadResponse{Status: &sourcepb.ReadResponse_Status{}}
	acks := &fakeSource{}
	acks.acks.first = &sourcepb.AckResponse{Result: &sourcepb.AckResponse_Result{Success: &emptypb.Empty{}}}
	for name, dial := range map[string]func() (any, error){
		"an answer": func() (any, error) { return Dial(ctx, began(reply("0-1"))) },
		"empty":     func() (any, error) { return Dial(ctx, began(&mappb.MapResponse{})) },
		"sot false": func() (any, error) { return Dial(ctx, began(&mappb.MapResponse{Handshake: &mappb.Handshake{}})) },
		"with an ID": func() (any, error) {
			return Dial(ctx, began(&mappb.MapResponse{Handshake: mapHello.GetHandshake(), Id: "0-1"}))
		},
		"with the result": func() (any, error) {
			return Dial(ctx, began(&mappb.MapResponse{Handshake: mapHello.GetHandshake(), Results: reply("").GetResults()}))
		},
		"batch map":        func() (any, error) { return DialBatchMap(ctx, began(eotOf(""))) },
		"reads":            func() (any, error) { return DialSource(ctx, startScripted(t, source)) },
		"acknowledgements": func() (any, error) { return DialSource(ctx, startScripted(t, acks)) },
	} {
		_, err := dial()
		var p *ProtocolError
		require.ErrorAs(t, err, &p, name)
		require.Equal(t, FaultHandshake, p.Fault, name)
	}
}
