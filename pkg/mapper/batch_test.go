package mapper_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A batchOutcome is how a call of BatchMap ended; see outcome.
type batchOutcome struct {
	returned bool
	answers  []string // "id=value[tags]" of each response
	panicked any
}

// callBatch sends a batch of messages with these IDs, each with its ID as payload
// and key, as numaflow-go does, and fails the test if the channel is not read to its
// end.
func callBatch(ctx context.Context, tb testing.TB, m batchmapsdk.BatchMapper, ids string) <-chan batchOutcome {
	tb.Helper()
	in, sent, done := make(chan batchmapsdk.Datum), make(chan struct{}), make(chan batchOutcome, 1)
	go func() {
		defer close(sent)
		defer close(in)
		for id := range strings.FieldsSeq(ids) {
			in <- batchmapsdk.NewHandlerDatum([]byte(id), time.Time{}, time.Time{}, map[string]string{"h": id}, id, []string{id})
		}
	}()
	go func() {
		var o batchOutcome
		defer func() {
			o.panicked = recover()
			<-sent
			done <- o
		}()
		o.answers = describe(m.BatchMap(ctx, in))
		o.returned = true
	}()
	return done
}

// panickedWith returns the error that a call panicked with.
func panickedWith(tb testing.TB, panicked any) error {
	tb.Helper()
	err, ok := panicked.(error)
	require.True(tb, ok, "panicked with %v", panicked)
	return err
}

func describe(answers batchmapsdk.BatchResponses) []string {
	out := []string{}
	for _, a := range answers.Items() {
		text := a.Id() + "="
		for _, m := range a.Items() {
			text += string(m.Value()) + strings.Join(m.Tags(), ",")
		}
		out = append(out, text)
	}
	return out
}

// A batchHandler answers each message with its payload in upper case.
type batchHandler struct {
	seen []string
	on   func(id string) // called for each message
}

func (h *batchHandler) BatchMap(_ context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
	out := batchmapsdk.BatchResponsesBuilder()
	for d := range in {
		h.seen = append(h.seen, d.Id())
		if h.on != nil {
			h.on(d.Id())
		}
		out = respond(out, d.Id(), strings.ToUpper(string(d.Value())))
	}
	return out
}

// respond appends a response to the message with this ID.
func respond(to batchmapsdk.BatchResponses, id string, values ...string) batchmapsdk.BatchResponses {
	r := batchmapsdk.NewBatchResponse(id)
	for _, v := range values {
		if v == "DROP" {
			r = r.Append(batchmapsdk.MessageToDrop())
			continue
		}
		r = r.Append(batchmapsdk.NewMessage([]byte(v)))
	}
	return to.Append(r)
}

func TestBatchCostAndTag(t *testing.T) {
	l := &tagger{Limiter: throttletest.New()}
	o := <-callBatch(t.Context(), t, mapper.WrapBatch(&batchHandler{}, l,
		mapper.WithCost(func(keys []string, d mapsdk.Datum) int {
			identified, ok := d.(interface{ Id() string })
			require.True(t, ok)
			require.Equal(t, identified.Id(), keys[0])
			require.Equal(t, keys[0], d.Headers()["h"])
			require.Empty(t, d.UserMetadata().Groups())
			require.Empty(t, d.SystemMetadata().Groups())
			return len(d.Value()) - 1
		}),
		mapper.WithTag(mapper.TagFromKey(0))), "a bb ccc")
	require.True(t, o.returned)
	require.Equal(t, 0+1+2, l.Used())
	require.Equal(t, []string{"a", "bb", "ccc"}, l.asked, "a message that costs nothing may be of a tag that is held")
}

// wrongAnswers is a handler that answers other than it should.
func wrongAnswers(answers func(out batchmapsdk.BatchResponses) batchmapsdk.BatchResponses) batchmapsdk.BatchMapper {
	return batchmapsdk.BatchMapperFunc(func(_ context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
		for range in {
			continue
		}
		return answers(nil)
	})
}

// answering is a handler that answers these IDs, whatever it was given.
func answering(ids string) batchmapsdk.BatchMapper {
	return wrongAnswers(func(out batchmapsdk.BatchResponses) batchmapsdk.BatchResponses {
		for id := range strings.FieldsSeq(ids) {
			out = respond(out, id)
		}
		return out
	})
}

func TestBatchAHandlerThatDoesNotAnswerEachMessageOnceFailsTheStream(t *testing.T) {
	for name, c := range map[string]struct {
		answers string
		faults  []string
	}{
		"none":      {"", []string{`3 not answered (["a" "b" "d"])`}},
		"one less":  {"a d", []string{`1 not answered (["b"])`}},
		"twice":     {"a b d b", []string{`1 answered more than once (["b"])`}},
		"unknown":   {"x a b d", []string{`1 answered but not given to it (["x"])`}},
		"denied":    {"a b c d", []string{`1 answered but not given to it (["c"])`}},
		"a mixture": {"a x a d", []string{`1 not answered (["b"])`, `1 answered more than once (["a"])`, `1 answered but not given to it (["x"])`}},
	} {
		t.Run(name, func(t *testing.T) {
			grant, deny := throttletest.Grant(), throttletest.Deny(throttled())
			l := throttletest.New(grant, grant, deny, grant)
			m := mapper.WrapBatch(answering(c.answers), l, mapper.WithMaxWait(time.Second), mapper.OnDenied(mapper.Drop()))
			o := <-callBatch(t.Context(), t, m, "a b c d")
			err := panickedWith(t, o.panicked)
			for _, fault := range c.faults {
				require.ErrorContains(t, err, fault)
			}
			require.Equal(t, len(c.faults), strings.Count(err.Error(), "(["))
			require.Equal(t, 3, l.Used(), "they were handled")
		})
	}
	// The same without anything denied, where the order alone tells.
	o := <-callBatch(t.Context(), t, mapper.WrapBatch(answering("b"), throttletest.New()), "a")
	require.ErrorContains(t, panickedWith(t, o.panicked), `1 not answered (["a"]), 1 answered but not given to it (["b"])`)
}

func TestBatchTheErrorNamesAFewOfManyIDs(t *testing.T) {
	o := <-callBatch(t.Context(), t, mapper.WrapBatch(answering(""), throttletest.New()), strings.Repeat("x ", 500))
	require.ErrorContains(t, panickedWith(t, o.panicked), `500 not answered (["x" "x" "x"])`)
}

func TestBatchAnswersOfAnyOrderAreReturnedInTheOrderOfTheBatch(t *testing.T) {
	type responses = batchmapsdk.BatchResponses
	m := mapper.WrapBatch(wrongAnswers(func(out responses) responses {
		return respond(respond(respond(out, "c", "3"), "a", "1", "1"), "b")
	}), throttletest.New())
	require.Equal(t, batchOutcome{returned: true, answers: []string{"a=11", "b=", "c=3"}}, <-callBatch(t.Context(), t, m, "a b c"))

	m = mapper.WrapBatch(wrongAnswers(func(out responses) responses {
		return respond(respond(respond(out, "b", "2"), "a", "1"), "a", "3")
	}), throttletest.New())
	require.Equal(t, batchOutcome{returned: true, answers: []string{"a=1", "b=2", "a=3"}}, <-callBatch(t.Context(), t, m, "a b a"),
		"an ID that comes twice is answered twice")
}

func TestBatchExemptDropped(t *testing.T) {
	type responses = batchmapsdk.BatchResponses
	answers := func(out responses) responses {
		out = respond(out, "mixed", "x", "DROP")
		out = respond(out, "drop", "DROP")
		out = respond(out, "drops", "DROP", "DROP")
		return respond(out, "empty")
	}
	for _, ids := range []string{"mixed drop drops empty", "empty drops mixed drop"} {
		l := throttletest.New()
		require.True(t, (<-callBatch(t.Context(), t, mapper.WrapBatch(wrongAnswers(answers), l, mapper.ExemptDropped()), ids)).returned)
		for i, id := range strings.Fields(ids) {
			require.Equal(t, strings.HasPrefix(id, "drop"), l.Draws()[i].Settled, id)
		}
		require.Equal(t, 2, l.Used())
		l = throttletest.New()
		<-callBatch(t.Context(), t, mapper.WrapBatch(wrongAnswers(answers), l), ids)
		require.Equal(t, 4, l.Used(), "without the option")
	}
	l := throttletest.New(throttletest.Deny(nil), throttletest.Grant())
	m := mapper.WrapBatch(&batchHandler{}, l, mapper.ExemptDropped(), mapper.WithMaxWait(time.Second), mapper.OnDenied(mapper.Drop()))
	require.True(t, (<-callBatch(t.Context(), t, m, "a b")).returned)
	require.Equal(t, 1, l.Used(), "a denied message has no tokens to give back, and takes none from another")
}
