package chat

import (
	"encoding/json"
	"slices"
	"strings"
)

// A reading is the state of parsing an answer, after each of its objects.
type reading struct {
	known    Answer
	pieces   speech            // the deltas of a stream, else the answer
	blocks   map[int]*toolCall // the calls of tools among the blocks of a message of Anthropic, by index
	messages messages
	choice   bool // there was one
	filters  []string
	problem  *Fault
	aside    *Fault // a text in place of an event that sounds like an error
	object   object // the last one without a choice
	streamed bool
	lost     bool // a part of it could not be read
	ended    bool // the answer was complete
}

// A speech is a model's words, in pieces.
type speech struct {
	text, refusal strings.Builder
	tools         []*toolCall
	other         bool // parts of a content that are not text
}

// take processes one object: an answer, or an event of one.
func (r *reading) take(o object) {
	c := r.choose(listOf(o["choices"]))
	if c == nil && r.native(o) {
		return
	}
	r.model(o)
	if c == nil {
		c = ownOfOllama(o)
		r.ended = r.ended || c != nil && string(o["done"]) == "true"
	}
	r.fail(errorIn(o, c != nil))
	if c == nil {
		r.object = o
		return
	}
	r.choice = true
	r.end(endOf(c))
	r.fail(inError(c["error"], 0))
	r.filtered(c["content_filter_results"])
	r.say(c)
}

// model records the model that an object names.
func (r *reading) model(o object) {
	if model := textOf(o["model"]); model != "" {
		r.known.Model = model
	}
}

// end records why the answer has ended, if it has.
func (r *reading) end(reason string) {
	if reason != "" {
		r.known.FinishReason = reason
	}
}

// fail records a problem, if it is one and the first.
func (r *reading) fail(f *Fault) {
	if r.problem == nil {
		r.problem = f
	}
}

// ownOfOllama converts an object of Ollama's own API to a choice; nil if it is not one. In a stream its messages are pieces.
func ownOfOllama(o object) object {
	m := objectOf(o["message"])
	if m["content"] == nil || m["role"] == nil {
		return nil
	}
	return object{"delta": o["message"], "finish_reason": first(o, "finish_reason", "done_reason"), "done": o["done"]}
}

// isPart reports whether an object is a part of an answer that has other parts.
func isPart(o object) bool {
	if strings.HasSuffix(textOf(o["object"]), ".chunk") || string(o["done"]) == "false" || isNativeEvent(textOf(o["type"])) {
		return true
	}
	for _, raw := range listOf(o["choices"]) {
		if c := objectOf(raw); !isNothing(c["delta"]) && isNothing(c["message"]) {
			return true
		}
	}
	return false
}

// objects processes consecutive JSON values, or a list of them, and the text after them. It returns false if the first is not an object.
//
// Parts of an answer are combined. Otherwise the first answer or error counts.
func (r *reading) objects(found []json.RawMessage, rest []byte) bool {
	if len(found) == 0 {
		return false
	}
	var list []json.RawMessage
	if json.Unmarshal(found[0], &list) == nil && len(list) > 0 {
		found, rest = list, nil
	}
	if objectOf(found[0]) == nil {
		return false
	}
	all := make([]object, 0, len(found))
	for _, raw := range found {
		if o := objectOf(raw); o != nil {
			all = append(all, o)
		}
	}
	if !slices.ContainsFunc(all, isPart) {
		for _, o := range all {
			if r.choice || r.problem != nil {
				break
			}
			r.take(o)
		}
		r.ended = true
		return true
	}
	r.streamed = true
	for _, o := range all {
		r.take(o)
	}
	r.events(rest)
	return true
}

// choose returns the choice that counts: the first, or the one with index 0 among several.
func (r *reading) choose(choices []json.RawMessage) object {
	var chosen object
	for _, raw := range choices {
		c := objectOf(raw)
		if c == nil {
			continue
		}
		isFirst := whole(c["index"]) == 0
		if chosen == nil && (isFirst || !r.streamed) || chosen != nil && isFirst && whole(chosen["index"]) > 0 {
			chosen = c
		}
	}
	return chosen
}

// say processes a choice.
func (r *reading) say(c object) {
	if !r.streamed {
		r.pieces.add(first(c, "message", "delta"), c["text"], false)
		return
	}
	before := r.pieces.text.Len()
	r.pieces.add(c["delta"], c["text"], true)
	r.messages.add(c["message"], r.pieces.text.Len() > before)
}

// add adds a message or a piece of one; old is the text of an old completion.
func (s *speech) add(raw, old json.RawMessage, inPieces bool) {
	m := objectOf(raw)
	if m == nil { // an old completion, or a message that is a text
		s.text.WriteString(textOf(raw))
		s.text.WriteString(textOf(old))
		return
	}
	if m["content"] == nil {
		s.content(old)
	}
	s.content(m["content"])
	s.refusal.WriteString(contentOf(m["refusal"]).text)
	s.calls(m, inPieces)
}

// messages are the messages in a stream's events. Each is the whole text so far, as some services send it beside the deltas, or a piece of
// it, as others do without deltas.
type messages struct {
	all    speech // concatenated
	last   string // the last one with a text
	tools  []*toolCall
	torn   bool // one does not begin with the previous one: they are pieces
	behind bool // a delta came after the last
}

// add adds the message of an event. delta reports whether the event has a piece of the text as well.
func (m *messages) add(raw json.RawMessage, delta bool) {
	var one speech
	one.add(raw, nil, false)
	m.put(&one, delta)
}

// put is add for a message that is parsed.
func (m *messages) put(one *speech, delta bool) {
	text := one.text.String()
	if strings.TrimSpace(text) == "" {
		m.behind = m.behind || delta
	} else {
		m.torn = m.torn || !strings.HasPrefix(text, m.last)
		m.last, m.behind = text, false
	}
	m.all.text.WriteString(text)
	m.all.refusal.WriteString(one.refusal.String())
	m.all.other = m.all.other || one.other
	if len(one.tools) > 0 {
		m.tools = one.tools
	}
}

// speech returns the model's words: text, refusal and calls of tools.
func (r *reading) speech() (text, refusal string, tools []*toolCall) {
	p, m := &r.pieces, &r.messages
	text, refusal, tools = p.text.String(), p.refusal.String(), p.tools
	switch {
	case m.last != "" && !m.torn && !m.behind:
		text = m.last
	case text == "":
		text = m.all.text.String()
	}
	if refusal == "" {
		refusal = m.all.refusal.String()
	}
	if len(tools) == 0 {
		tools = m.tools
	}
	return text, refusal, tools
}

// filtered records which of Azure's filters removed something.
func (r *reading) filtered(raw json.RawMessage) {
	for name, result := range objectOf(raw) {
		if string(objectOf(result)["filtered"]) == "true" && isWord(name) {
			r.filters = append(r.filters, name)
		}
	}
	slices.Sort(r.filters)
	r.filters = slices.Compact(r.filters)
}

// unfinished looks for a problem in place of an answer, or of its end.
func (r *reading) unfinished() {
	if r.known.FinishReason != "" && r.choice {
		return
	}
	if (!r.choice || r.streamed) && r.object != nil {
		r.fail(problemOf(r.object))
	}
	r.fail(r.aside)
}

// answer returns the answer, or the fault found instead.
func (r *reading) answer() (Answer, error) {
	if u := r.known.Usage; u != nil && !r.ended && r.known.FinishReason == "" { // such as the first of some lines alone
		u.Final = false
	}
	a := r.known
	fault := func(kind Kind, words string) (Answer, error) {
		return Answer{}, &Fault{Kind: kind, Words: words, Answer: r.known}
	}
	r.unfinished()
	if r.problem != nil {
		r.problem.Answer = r.known
		return Answer{}, r.problem
	}
	text, refusal, tools := r.speech()
	a.Text, a.ToolCalls = text, toolCalls(tools)
	ending := endingOf(a.FinishReason)
	switch {
	case !r.choice && !r.ended:
		return fault(Broken, "it ended before there was a choice")
	case !r.choice:
		return fault(NoChoices, "")
	case refusal != "":
		return fault(Refused, refusal)
	case ending == filteredEnding:
		return fault(Filtered, strings.Join(r.filters, ", "))
	case ending == refusedEnding:
		return fault(Refused, a.Text)
	case ending == brokenEnding:
		return fault(Broken, "finish_reason "+a.FinishReason)
	case r.lost:
		return fault(Broken, "an event of it could not be read")
	case !r.ended && a.FinishReason == "":
		return fault(Broken, "the events ended in the middle")
	case strings.TrimSpace(a.Text) != "" || a.ToolCalls != nil:
		return a, nil
	case ending == cutEnding:
		return fault(Empty, "all tokens that the answer may have were used up before it began; see maxTokens")
	case r.pieces.other || r.messages.all.other:
		return fault(Empty, "its content has no part that is a text")
	}
	return fault(Empty, "")
}
