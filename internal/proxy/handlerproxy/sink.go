package handlerproxy

import (
	"context"

	sinkpb "github.com/numaproj/numaflow-go/pkg/apis/proto/sink/v1"
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The fields of a result of a sink.
const (
	sinkResultID     = 1
	sinkResultStatus = 2
)

// A sinkNext is the handler inside the wrapper of a sink.
type sinkNext struct{}

func (sinkNext) Sink(ctx context.Context, in <-chan sinksdk.Datum) sinksdk.Responses {
	b := batchOf(ctx)
	ask(ctx, b, in)
	var responses sinksdk.Responses
	for _, raw := range b.replies {
		for _, result := range all(raw, sinkResponse.results) {
			responses = append(responses, sinkStatus(result))
		}
	}
	return responses
}

// sinkStatus returns a result as the wrapper sees it: its ID and its status.
func sinkStatus(result []byte) sinksdk.Response {
	id, _ := last(result, sinkResultID)
	r := sinksdk.Response{ID: string(id)}
	switch sinkpb.Status(number(result, sinkResultStatus)) {
	case sinkpb.Status_SUCCESS:
		r.Success = true
	case sinkpb.Status_FALLBACK:
		r.Fallback = true
	case sinkpb.Status_SERVE:
		r.Serve = true
	case sinkpb.Status_ON_SUCCESS:
		r.OnSuccess = true
	case sinkpb.Status_NACK:
		r.Nack = true
	default: // a failure, or a status of a later protocol
	}
	return r
}

func (p *proxy) serveSink(x *exchange, handler sinksdk.Sinker) error {
	return serveBatches(x, func(m *message) sinksdk.Datum { return m },
		func(ctx context.Context, b *batch, in <-chan sinksdk.Datum) error {
			responses := handler.Sink(ctx, in)
			for _, raw := range p.sinkAnswers(b, responses) {
				if err := x.say(raw); err != nil {
					return err
				}
			}
			return b.finish()
		})
}

// sinkAnswers returns the responses to a batch: the handler's unchanged, as far as they are about its messages, and the wrapper's for the
// rest.
func (p *proxy) sinkAnswers(b *batch, responses sinksdk.Responses) [][]byte {
	results := map[string][][]byte{} // the handler's, by ID
	n := 0
	for _, raw := range b.replies {
		for _, result := range all(raw, sinkResponse.results) {
			id, _ := last(result, sinkResultID)
			results[string(id)] = append(results[string(id)], result)
			n++
		}
	}
	var chosen, made []byte
	taken := 0
	for _, r := range responses {
		if b.messages[r.ID] == nil {
			continue // without a limit nothing has compared the answers with the batch
		}
		delete(b.messages, r.ID)
		if result := choose(results[r.ID], r); result != nil {
			chosen = appendResult(chosen, result)
			taken++
			continue
		}
		made = appendResult(made, sinkResult(r))
	}
	answers := b.replies
	if taken != n { // the wrapper has omitted some
		answers = [][]byte{chosen}
	}
	if len(made) > 0 {
		answers = append(answers, made)
	}
	return answers
}

// choose returns the handler's result for a response; nil if the wrapper made the response.
func choose(results [][]byte, r sinksdk.Response) []byte {
	for _, result := range results {
		if s := sinkStatus(result); s.Success == r.Success && s.Fallback == r.Fallback && s.Serve == r.Serve && s.OnSuccess == r.OnSuccess && s.Nack == r.Nack {
			return result
		}
	}
	return nil
}

func appendResult(response, result []byte) []byte {
	response = protowire.AppendTag(response, sinkResponse.results, protowire.BytesType)
	return protowire.AppendBytes(response, result)
}

func (p *proxy) sinkHandler(l throttle.Limiter) sinksdk.Sinker {
	return sinker.Wrap(sinkNext{}, l, p.sinkOptions()...)
}
