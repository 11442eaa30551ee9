package fakellm

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"time"
)

// A request is the part of a call that the server reads.
type request struct {
	Model    string `json:"model"`
	Messages []struct {
		Content string `json:"content"`
	} `json:"messages"`
	MaxTokens           int  `json:"max_tokens"`
	MaxCompletionTokens int  `json:"max_completion_tokens"`
	Stream              bool `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// promptTokens estimates the tokens of the prompt from its characters.
func (r *request) promptTokens() int {
	n := 0
	for _, m := range r.Messages {
		n += characters(m.Content)
	}
	return tokensOf(n)
}

// maxTokens returns the maximum length of the answer.
func (r *request) maxTokens(byDefault int) int {
	switch {
	case r.MaxCompletionTokens > 0:
		return r.MaxCompletionTokens
	case r.MaxTokens > 0:
		return r.MaxTokens
	}
	return byDefault
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type choice struct {
	Index        int      `json:"index"`
	Message      *message `json:"message,omitempty"`
	Delta        *message `json:"delta,omitempty"`
	FinishReason *string  `json:"finish_reason"`
}

// A reply is the body of a response, or one event of a streamed one.
type reply struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

// answer makes an answer from the last message, always the same for a prompt. Its length is between an eighth and the whole of the maximum,
// and its real prompt tokens are near the estimate.
func (s *Server) answer(r *request) (reply, usage) {
	last := r.Messages[len(r.Messages)-1].Content
	h := fnv.New32a()
	_, _ = h.Write([]byte(last))
	seed := int(h.Sum32() >> 1)
	most := r.maxTokens(s.config.DefaultMaxTokens)
	u := usage{Completion: max(1, most/8+seed%max(1, most-most/8))}
	u.Prompt = max(1, r.promptTokens()*(85+seed%25)/100)
	u.Total = u.Prompt + u.Completion
	words := strings.Fields(last)
	if len(words) == 0 {
		words = []string{"nothing"}
	}
	var text strings.Builder
	for i := range min(u.Completion, 400) { // a token of each
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(words[(seed+i)%len(words)])
	}
	finish := "stop"
	if u.Completion == most {
		finish = "length"
	}
	return reply{
		ID: fmt.Sprintf("chatcmpl-%08x", seed), Object: "chat.completion", Created: time.Now().Unix(), Model: r.Model,
		Choices: []choice{{Message: &message{Role: "assistant", Content: text.String()}, FinishReason: &finish}},
		Usage:   &u,
	}, u
}

// stream writes the answer as server-sent events, a word each.
func (a reply) stream(w http.ResponseWriter, withUsage bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	used, finish, text := a.Usage, a.Choices[0].FinishReason, a.Choices[0].Message.Content
	a.Object, a.Usage = "chat.completion.chunk", nil
	event := func(c []choice, u *usage) {
		a.Choices, a.Usage = c, u
		if encoded, err := json.Marshal(a); err == nil {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", encoded)
		}
	}
	for word := range strings.SplitAfterSeq(text, " ") {
		event([]choice{{Delta: &message{Role: "assistant", Content: word}}}, nil)
	}
	event([]choice{{Delta: &message{}, FinishReason: finish}}, nil)
	if withUsage {
		event([]choice{}, used)
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}
