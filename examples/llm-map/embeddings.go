package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	numaflow "github.com/numaproj/numaflow-go/pkg"
	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/internal/program"
)

// This file makes vectors of the messages of a batch: many messages are one call. A call that the provider refuses is halved, so that a text
// which it does not take fails alone.

// embeds reports whether calls are for vectors.
func (s *settings) embeds() bool { return s.API == chat.Embeddings }

// batches reports whether the program is a batch map, whose calls are for vectors.
func (s *settings) batches() bool {
	if len(s.targets) > 0 {
		return s.targets[0].embeds()
	}
	return s.embeds()
}

// newBatchServer returns the server of a handler of batches.
func newBatchServer(h *handler, s *settings) numaflow.Server {
	var opts []batchmapsdk.Option
	if s.Socket != "" {
		opts = append(opts, batchmapsdk.WithSockAddr(s.Socket))
	}
	if s.ServerInfo != "" {
		opts = append(opts, batchmapsdk.WithServerInfoFilePath(s.ServerInfo))
	}
	return batchmapsdk.NewServer(h, opts...)
}

// A text is a message of a batch, and what becomes of it.
type text struct {
	datum   batchDatum
	content string
	tag     string
	tokens  int // by the estimate

	result result
	err    error // there is no result
}

// A batchDatum presents a message of a batch as one of a unary map, without metadata.
type batchDatum struct{ batchmapsdk.Datum }

// UserMetadata implements mapsdk.Datum.
func (batchDatum) UserMetadata() *mapsdk.UserMetadata { return nil }

// SystemMetadata implements mapsdk.Datum.
func (batchDatum) SystemMetadata() *mapsdk.SystemMetadata { return nil }

// BatchMap implements batchmapsdk.BatchMapper. A batch whose context ends first has no answers, so that the platform redelivers it.
func (h *handler) BatchMap(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
	var all, good []*text
	for d := range in {
		t := h.text(batchDatum{d})
		if all = append(all, t); t.result.Error == nil {
			good = append(good, t)
		}
	}
	var calls sync.WaitGroup
	for _, texts := range h.calls(good) {
		calls.Go(func() { h.embed(ctx, texts, 0) })
	}
	calls.Wait()
	out := make(batchmapsdk.BatchResponses, 0, len(all))
	for _, t := range all {
		out = out.Append(batchmapsdk.NewBatchResponse(t.datum.Id()).Append(h.vector(ctx, t)))
	}
	return out
}

// text makes the text of a message, or an error result.
func (h *handler) text(d batchDatum) *text {
	t := &text{datum: d}
	messages, err := h.prompt.messages(d.Keys(), d)
	if err != nil {
		t.result.Error = &fault{Code: codeBadPrompt, Message: err.Error()}
		return t
	}
	if h.tag != nil {
		t.tag = h.tag(d.Keys(), d.Value, d.Headers)
	}
	t.content = messages[len(messages)-1].Content
	for _, d := range h.deployments {
		t.tokens = max(t.tokens, d.limits.Text(t.content))
	}
	return t
}

// A room is how much a call may hold, at any of the deployments.
type room struct{ inputs, inputTokens, callTokens int }

func (h *handler) room() room {
	var r room
	for i, d := range h.deployments {
		const closed = 90 // percent: the estimate is one
		own := room{d.settings.MaxInputs, d.settings.MaxInputTokens, int(int64(d.settings.MaxCallTokens) * closed / 100)}
		if i == 0 {
			r = own
		}
		r = room{min(r.inputs, own.inputs), min(r.inputTokens, own.inputTokens), min(r.callTokens, own.callTokens)}
	}
	return r
}

// calls puts texts into as few calls as may hold them, in order. A call is for one tag. A text that may be too long has one for itself.
func (h *handler) calls(texts []*text) (all [][]*text) {
	type open struct{ at, tokens int } // at is the place of the call
	calls, most := map[string]*open{}, h.room()
	for _, t := range texts {
		if t.tokens > most.inputTokens {
			all = append(all, []*text{t})
			continue
		}
		c := calls[t.tag]
		if c == nil || len(all[c.at]) >= most.inputs || c.tokens+t.tokens > most.callTokens {
			c = &open{at: len(all)}
			calls[t.tag], all = c, append(all, nil)
		}
		all[c.at], c.tokens = append(all[c.at], t), c.tokens+t.tokens
	}
	return all
}

// embed makes the results of texts with a call for all of them. If it is refused, a half of it may not be. before is the number of calls that
// were refused so.
func (h *handler) embed(ctx context.Context, texts []*text, before int) {
	q := question{texts: make([]string, len(texts))}
	for i, t := range texts {
		q.texts[i] = t.content
	}
	r, err := h.answer(withTag(ctx, texts[0].tag), q)
	r.Attempts += before
	if half := len(texts) / 2; err == nil && r.refused && half > 0 {
		var other sync.WaitGroup
		other.Go(func() { h.embed(ctx, texts[half:], r.Attempts) })
		h.embed(ctx, texts[:half], r.Attempts)
		other.Wait()
		return
	}
	shares := r.shares(q.texts)
	for i, t := range texts {
		t.result, t.err = r, err
		t.result.Usage = shares[i]
		if r.vectors != nil {
			t.result.Embedding = r.vectors[i]
		}
	}
}

// shares divides the usage of a call among its texts by their bytes. The shares add up to it.
func (r result) shares(texts []string) []*used {
	shares := make([]*used, len(texts))
	if r.Usage == nil {
		return shares
	}
	all := 0
	for _, t := range texts {
		all += len(t)
	}
	bytes, before := 0, used{}
	for i, t := range texts {
		bytes += len(t)
		until := func(n int) int { return int(int64(n) * int64(bytes) / int64(max(all, 1))) }
		now := used{until(r.Usage.PromptTokens), until(r.Usage.CompletionTokens), until(r.Usage.TotalTokens)}
		shares[i] = &used{now.PromptTokens - before.PromptTokens, now.CompletionTokens - before.CompletionTokens, now.TotalTokens - before.TotalTokens}
		before = now
	}
	return shares
}

// vector is the answer to a message of a batch.
func (h *handler) vector(ctx context.Context, t *text) batchmapsdk.Message {
	if denied, ok := t.err.(*admission.Denied); ok { //nolint:errorlint // as in Map
		return batchmapsdk.MessageToNack(denied.NackOptions(denied.Err.Error()))
	}
	if t.err != nil {
		h.abandoner.Abandon(ctx, t.err)
	}
	m := h.message(t.result.withInput(h.settings.Input, t.datum.Value()), t.datum.Keys(), t.datum)
	return batchmapsdk.NewMessage(m.Value()).WithKeys(m.Keys()).WithTags(m.Tags())
}

// checkOneKind finds deployments of which only some make vectors.
func (s *settings) checkOneKind(bad program.Complaint) {
	for i := range s.targets {
		if t := &s.targets[i]; t.embeds() != s.targets[0].embeds() {
			bad("deployments."+t.Deployment+": api", fmt.Sprintf("is %s, and that of %s is %s", t.API, s.targets[0].Deployment, s.targets[0].API),
				"embeddings for all of them, or for none")
		}
	}
	if s.batches() && s.Input == inputMetadata {
		bad("input", "is metadata, which a batch map does not have", "none, text or json with api: embeddings")
	}
}

// checkTexts finds settings of a deployment that calls for vectors do not have, or that only these have.
func (s *settings) checkTexts(bad program.Complaint) {
	type given struct {
		key string
		is  bool
	}
	wrong, allowed := []given{
		{"maxInputs", s.MaxInputs != 0}, {"maxInputTokens", s.MaxInputTokens != 0}, {"maxCallTokens", s.MaxCallTokens != 0},
	}, "with api: embeddings"
	if s.embeds() {
		wrong, allowed = []given{
			{"system", s.System != ""},
			{"systemFile", s.SystemFile != ""},
			{"maxTokens", s.MaxTokens != 0},
			{"maxPromptTokens", s.MaxPromptTokens != 0},
			{"temperature", s.Temperature != ""},
		}, "with another api"
	}
	for _, w := range wrong {
		if w.is {
			bad(w.key, fmt.Sprintf("is set, but the api is %s", cmp.Or(s.API, chat.Chat)), allowed)
		}
	}
}
