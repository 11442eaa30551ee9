package chat

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// chunk is a chunk of a stream: a piece of the text, and why it ended; empty: it has not.
func chunk(text, finish string) string {
	reason := "null"
	if finish != "" {
		reason = `"` + finish + `"`
	}
	return `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":` + reason + `}]}`
}

// both is a chunk with the message so far as well.
func both(text, whole, finish string) string {
	return strings.Replace(chunk(text, finish), `"delta"`, `"message":{"role":"assistant","content":"`+whole+`"},"delta"`, 1)
}

// message is a chunk with a message in the place of a delta.
func message(text, finish string) string {
	return strings.Replace(chunk(text, finish), `"delta"`, `"message"`, 1)
}

// events is a stream with an event of each text.
func events(data ...string) string { return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n" }

// ndjson is a stream with a text in each line.
func ndjson(data ...string) string { return strings.Join(data, "\n") + "\n" }

// However a stream is written, what was said is put together once and whole.
func TestStreams(t *testing.T) {
	stream := events(chunk("h", ""), chunk("i", "stop"), "[DONE]")
	pretty := strings.NewReplacer(`,"`, ",\ndata:  \"", "[", "[\ndata: ", "\n\ndata: [\ndata: DONE]", "\n\ndata: [DONE]")
	ollama := func(text, done string) string {
		return `{"model":"m","message":{"role":"assistant","content":"` + text + `"},"done":` + done + `}`
	}
	for name, body := range map[string]string{
		"as it is":                        stream,
		"CRLF":                            strings.ReplaceAll(stream, "\n", "\r\n"),
		"CR":                              strings.ReplaceAll(stream, "\n", "\r"),
		"a byte-order mark":               "\xef\xbb\xbf" + stream,
		"comments, ids and times":         ": hold on\n\nid: 1\nretry: 300\n" + strings.ReplaceAll(stream, "\n\n", "\nid: 2\n:\n\n"),
		"fields that nobody knows":        strings.ReplaceAll(stream, "data: ", "foo: {\nbar\ndata: "),
		"no blank lines":                  strings.ReplaceAll(stream, "\n\n", "\n"),
		"no blank behind the colon":       strings.ReplaceAll(stream, "data: ", "data:"),
		"an event in several lines":       pretty.Replace(stream),
		"the same with CRLF":              strings.ReplaceAll(pretty.Replace(stream), "\n", "\r\n"),
		"a text in two lines":             events(strings.Replace(chunk("h", ""), `,"choices`, ",\ndata: \"choices", 1), chunk("i", "stop")),
		"NDJSON":                          ndjson(chunk("h", ""), chunk("i", "stop")),
		"NDJSON with [DONE]":              ndjson(chunk("h", ""), chunk("i", ""), "data: [DONE]"),
		"NDJSON, then events":             ndjson(chunk("h", "")) + events(chunk("i", "stop")),
		"NDJSON without line ends":        chunk("h", "") + chunk("i", "stop"),
		"events, then NDJSON":             events(chunk("h", "")) + ndjson(chunk("i", "stop")),
		"a list":                          "[" + chunk("h", "") + ",\n" + chunk("i", "stop") + "]",
		"lists":                           events("["+chunk("h", "")+"]", "["+chunk("i", "stop")+"]"),
		"one chunk":                       chunk("hi", "stop"),
		"a first without a choice":        events(`{"choices":[],"prompt_filter_results":[]}`, chunk("h", ""), chunk("i", "stop")),
		"the same as NDJSON":              ndjson(`{"object":"chat.completion.chunk","choices":[]}`, chunk("h", ""), chunk("i", "stop")),
		"deltas and the message so far":   events(both("h", "h", ""), both("i", "hi", "stop")),
		"the message at the end":          events(chunk("h", ""), both("i", "hi", "stop")),
		"an end with the message alone":   events(chunk("h", ""), chunk("i", ""), message("hi", "stop")),
		"an empty message at the end":     events(chunk("h", ""), chunk("i", ""), message("", "stop")),
		"a message at the beginning":      events(both("h", "h", ""), chunk("i", "stop")),
		"messages so far":                 events(message("h", ""), message("hi", "stop")),
		"messages that are pieces":        events(message("h", ""), message("i", "stop")),
		"messages and deltas, both whole": events(both("h", "h", ""), both("hi", "hi", "stop")),
		"messages and deltas, pieces":     events(both("h", "h", ""), both("i", "i", "stop")),
		"an answer, then its chunks":      events(chunk("h", ""), chunk("i", ""), good(`{"content":"hi"}`)),
		"Ollama's":                        ndjson(ollama("h", "false"), ollama("i", "true")),
		"Ollama's, the same twice":        ndjson(ollama("hi", "false"), ollama("", "true")),
		"an answer behind a sign of life": ndjson(`{"status":"processing"}`, good(`{"content":"hi"}`)),
		"an answer behind an event":       events(`{"status":"processing"}`, good(`{"content":"hi"}`)),
		"no numbers":                      events(strings.Replace(chunk("h", ""), "[{", `[{"logprob":-Infinity,"x":[NaN,Infinity],`, 1), chunk("i", "stop")),
		"an event that is no JSON":        events("ping", chunk("h", ""), chunk("i", "stop")),
		"an event of another name":        "event: trace\ndata: {\"broken\n\n" + stream,
		"a text behind the end":           events(chunk("h", ""), chunk("i", "stop"), "Rate limit exceeded", "[DONE]"),
		"a text at the beginning":         events("the model is loading", chunk("h", ""), chunk("i", "stop")),
		"a usage before the end":          events(chunk("h", ""), chunk("i", ""), `{"id":"x","choices":[],"usage":{"total_tokens":3}}`, "[DONE]"),
		"null as an end":                  events(chunk("h", "null"), chunk("i", "stop")),
		"an end in capitals":              events(chunk("h", ""), chunk("i", "STOP")),
		"an end of Anthropic":             events(chunk("h", ""), chunk("i", "end_turn")),
		"cut short":                       events(chunk("h", ""), chunk("i", "MAX_TOKENS")),
	} {
		t.Run(name, func(t *testing.T) {
			a, err := Read([]byte(body), "text/event-stream")
			require.NoError(t, err, body)
			require.Equal(t, "hi", a.Text, body)
		})
	}
}

// What ends in the middle, lacks a piece, or says in its midst that something is wrong is no answer.
func TestBrokenStreams(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		kind  Kind
		words string
	}{
		"a chunk alone":            {chunk("h", ""), Broken, "middle"},
		"NDJSON, cut off":          {ndjson(chunk("h", ""), chunk("i", "")), Broken, "middle"},
		"NDJSON, cut in a line":    {ndjson(chunk("h", ""), chunk("i", "stop")[:60]), Broken, "could not be read"},
		"a list of pieces":         {"[" + chunk("h", "") + "," + chunk("i", "") + "]", Broken, "middle"},
		"Ollama's, cut off":        {`{"message":{"role":"assistant","content":"h"},"done":false}`, Broken, "middle"},
		"null at the end":          {events(chunk("h", ""), chunk("i", "null")), Broken, "middle"},
		"a piece that is lost":     {events(chunk("h", ""), chunk("x", "")[:60], chunk("i", "stop"), "[DONE]"), Broken, "could not be read"},
		"no blank lines, lost":     {"data: " + chunk("x", "")[:60] + "\ndata: " + chunk("i", "stop") + "\n\n", Broken, "could not be read"},
		"an error, a text":         {events(chunk("h", "")) + "event: error\ndata: overloaded\n\n" + events("[DONE]"), Provider, "overloaded"},
		"an error, a JSON text":    {events(chunk("h", "")) + "event: error\ndata: \"overloaded\"\n\ndata: [DONE]\n\n", Provider, "overloaded"},
		"an error, two lines":      {events(chunk("h", "")) + "event: error\ndata: overloaded\ndata: come back\n\ndata: [DONE]\n\n", Provider, "overloaded"},
		"an error without data":    {events(chunk("h", "")) + "event: error\ndata:\n\n" + events("[DONE]"), Provider, ""},
		"an error alone":           {events(chunk("h", "")) + "event: error\n\ndata: [DONE]\n\n", Provider, ""},
		"a text before the end":    {events(chunk("h", ""), "Rate limit exceeded", "[DONE]"), Provider, "Rate limit"},
		"an object before the end": {events(chunk("h", ""), `{"message":"gone"}`, "[DONE]"), Provider, "gone"},
		"a chunk with a name":      {"event: chunk\ndata: " + chunk("x", "")[:80] + "\n\n" + events(chunk("i", "stop")), Broken, "could not be read"},
		"an error, unwrapped":      {events(chunk("h", "")) + "event: error\ndata: {\"msg\":\"gone\"}\n\ndata: [DONE]\n\n", Provider, "gone"},
		"an error, of nothing":     {events(chunk("h", "")) + "event: error\ndata: {}\n\ndata: [DONE]\n\n", Provider, ""},
		"an error without a name":  {events(chunk("h", ""), "[ERROR] gone", "[DONE]"), Provider, "gone"},
		"an error without a field": {events(chunk("h", "")) + `{"error":{"message":"gone"}}`, Provider, "gone"},
		"an error as NDJSON":       {ndjson(chunk("h", ""), `{"error":"gone"}`), Provider, "gone"},
		"an error of vLLM":         {events(chunk("h", ""), `{"object":"error","message":"gone","code":500}`, "[DONE]"), Provider, "gone"},
		"an error with a status":   {events(chunk("h", ""), `{"code":503,"message":"gone"}`, "[DONE]"), Provider, "gone"},
		"an error of MiniMax":      {events(chunk("h", ""), `{"base_resp":{"status_code":1002,"status_msg":"rate"}}`, "[DONE]"), Provider, "rate"},
		"an end that is none":      {events(chunk("h", ""), chunk("i", "FINISH_REASON_ERROR")), Broken, "ERROR"},
		"a filter in capitals":     {events(chunk("h", ""), chunk("i", "FinishReason.SAFETY")), Filtered, ""},
		"a filter in one word":     {events(chunk("h", ""), chunk("i", "ContentFilter")), Filtered, ""},
		"used up, in capitals":     {events(chunk("", ""), chunk("", "MAX_TOKENS")), Empty, "maxTokens"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read([]byte(c.body), "text/event-stream")
			f, ok := errors.AsType[*Fault](err)
			require.True(t, ok, c.body)
			require.Equal(t, c.kind, f.Kind, c.body)
			require.Contains(t, f.Words, c.words)
		})
	}
}

// What a field holds that nobody reads makes no answer a bad one, though it is no JSON.
func TestNearlyJSON(t *testing.T) {
	for name, body := range map[string]string{
		"NaN":                 `{"score":NaN,"choices":[{"logprobs":{"x":[-Infinity,Infinity,1]},"message":{"content":"a NaN"},"finish_reason":"stop"}]}`,
		"a line in a text":    "{\"id\":\"a\nb\",\"choices\":[{\"message\":{\"content\":\"a NaN\"},\"finish_reason\":\"stop\"}]}",
		"a tab in a text":     "{\"id\":\"a\tb\\\"\",\"choices\":[{\"message\":{\"content\":\"a NaN\"},\"finish_reason\":\"stop\"}]}",
		"something behind it": `{"score":NaN,"choices":[{"message":{"content":"a NaN"}}]}"`,
	} {
		a, err := Read([]byte(body), "")
		require.NoError(t, err, name)
		require.Equal(t, "a NaN", a.Text, name)
	}
	a, err := Read([]byte("{\"choices\":[{\"message\":{\"content\":\"one\ntwo\t\\\"three\\\"\"}}]}"), "")
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\t\"three\"", a.Text)
	_, err = Read([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"one\ndata: two\"},\"finish_reason\":\"stop\"}]}\n\n"), "")
	require.NoError(t, err)
}

// A code of MiniMax that says that all is well is no error, whatever its type.
func TestNoErrorOfMiniMax(t *testing.T) {
	for _, code := range []string{"0", `"0"`, "null", `""`} {
		a, err := Read([]byte(strings.Replace(good(`{"content":"hi"}`), "{", `{"base_resp":{"status_code":`+code+`,"status_msg":""},`, 1)), "")
		require.NoError(t, err, code)
		require.Equal(t, "hi", a.Text)
	}
}

// Calls of tools that come in pieces and in the message as well are there once.
func TestToolCallsOfMessages(t *testing.T) {
	const call = `{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}`
	piece := `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}}]}`
	end := `{"choices":[{"delta":{},"message":{"tool_calls":[` + call + `]},"finish_reason":"tool_calls"}]}`
	for _, body := range []string{events(piece, end), events(end), events(end, end), ndjson(piece, end)} {
		a, err := Read([]byte(body), "")
		require.NoError(t, err, body)
		require.JSONEq(t, "["+call+"]", string(a.ToolCalls), body)
	}
}

// A long body is read in time that grows as it does, whatever it is made of: else this test would not end.
func TestLongBodies(t *testing.T) {
	for name, part := range map[string]string{
		"lines":       "data: {\n",
		"whole lines": "data: {}\n",
		"objects":     "{}",
		"lists":       "[",
		"strings":     "data: {\"\n",
		"no numbers":  "{\"a\":NaN}\n",
	} {
		_, err := Read([]byte(strings.Repeat(part, MaxBody/8/len(part))), "")
		require.Error(t, err, name)
	}
}
