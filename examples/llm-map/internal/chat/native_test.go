package chat

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// named is a stream of events that have their type as a name, too, as both APIs send them.
func named(data ...string) string {
	var b strings.Builder
	for _, text := range data {
		b.WriteString("event: " + textOf(objectOf(json.RawMessage(text))["type"]) + "\ndata: " + text + "\n\n")
	}
	return b.String()
}

// lined is a stream of events with a text in each line.
func lined(stream string) string {
	var b strings.Builder
	for line := range strings.Lines(stream) {
		if data, is := strings.CutPrefix(line, "data: "); is {
			b.WriteString(data)
		}
	}
	return b.String()
}

// response is an answer of the responses API.
func response(status, rest, output string) string {
	return `{"id":"resp_1","object":"response","created_at":1,"status":"` + status + `","background":false,"error":null,"incomplete_details":null,` +
		`"model":"gpt-5-2025","output":[` + output + `],"parallel_tool_calls":true,"text":{"format":{"type":"text"}},"tool_choice":"auto"` + rest + `}`
}

// The parts of answers of the responses API.
const (
	outputUsage = `,"usage":{"input_tokens":75,"input_tokens_details":{"cached_tokens":64},"output_tokens":9,` +
		`"output_tokens_details":{"reasoning_tokens":3},"total_tokens":84}`
	thought   = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}`
	hiMessage = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],` +
		`"text":"h"},{"type":"output_text","text":"i"}]}`
	aCall = `{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{\"a\":1}","status":"completed"}`
	calls = `[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]`
)

// outputEvents is an answer of the responses API in events: the last one of a kind, with an answer.
func outputEvents(last, whole string) string {
	return named(
		`{"type":"response.created","sequence_number":0,"response":`+response("in_progress", `,"usage":null`, "")+`}`,
		`{"type":"response.in_progress","sequence_number":1,"response":`+response("in_progress", `,"usage":null`, "")+`}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}`,
		`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"delta":"hm"}`,
		`{"type":"response.output_item.done","output_index":0,"item":`+thought+`}`,
		`{"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":""}}`,
		`{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"h"}`,
		`{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"i"}`,
		`{"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"hi"}`,
		`{"type":"response.output_item.done","output_index":1,"item":`+hiMessage+`}`,
		`{"type":"`+last+`","sequence_number":9,"response":`+whole+`}`,
	)
}

// claude is an answer of the messages API.
func claude(content, reason string) string {
	return `{"id":"msg_1","type":"message","role":"assistant","model":"claude-5","content":[` + content + `],"stop_reason":"` + reason +
		`","stop_sequence":null,"usage":{"input_tokens":11,"cache_creation_input_tokens":0,"cache_read_input_tokens":64,"output_tokens":9}}`
}

// The parts of answers of the messages API.
const (
	thinking  = `{"type":"thinking","thinking":"hm","signature":"x"}`
	hiBlocks  = thinking + `,{"type":"text","text":"h"},{"type":"text","text":"i"}`
	callBlock = `{"type":"tool_use","id":"c","name":"f","input":{"a":1}}`
)

// claudeEvents is an answer of the messages API in events, with some blocks and an end.
func claudeEvents(reason string, blocks ...string) string {
	all := append([]string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-5","content":[],"stop_reason":null,` +
			`"usage":{"input_tokens":11,"cache_creation_input_tokens":0,"cache_read_input_tokens":64,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
		`{"type":"ping"}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}`,
		`{"type":"content_block_stop","index":0}`,
	}, blocks...)
	return named(append(all, `{"type":"message_delta","delta":{"stop_reason":"`+reason+`","stop_sequence":null},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`)...)
}

// The blocks of answers of the messages API in events.
var (
	hiEvents = []string{
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"h"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"i"}}`,
		`{"type":"content_block_stop","index":1}`,
	}
	callEvents = []string{
		`{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"query\":1}"}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":":1}"}}`,
		`{"type":"content_block_stop","index":2}`,
	}
)

// A said is what a body says, and from where on its usage is known to be the last.
type said struct {
	body, text, tools, finish, known string
}

// natives are answers of the three APIs. All report the same usage: 75 tokens of the prompt, of which 64 came from a cache, and 9 of the answer.
var natives = map[string]said{
	"response": {response("completed", outputUsage, thought+","+hiMessage), "hi", "", "stop", ""},
	"response, too long": {
		strings.Replace(response("incomplete", outputUsage, hiMessage), `details":null`, `details":{"reason":"max_output_tokens"}`, 1),
		"hi", "", "length", "",
	},
	"response, incomplete":    {response("incomplete", outputUsage, hiMessage), "hi", "", "length", ""},
	"response, call":          {response("completed", outputUsage, thought+","+aCall), "", calls, "tool_calls", ""},
	"response, call and text": {response("completed", outputUsage, hiMessage+","+aCall), "hi", calls, "tool_calls", ""},
	"response, custom call": {
		response("completed", outputUsage, `{"type":"custom_tool_call","id":"x","call_id":"c","name":"sql","input":"select"}`), "",
		`[{"id":"c","type":"custom","custom":{"name":"sql","input":"select"}}]`, "tool_calls", "",
	},
	"response, a search": {
		response("completed", outputUsage, `{"type":"web_search_call","id":"ws_1","status":"completed"},`+hiMessage),
		"hi", "", "stop", "",
	},
	"response in a list": {"[" + response("completed", outputUsage, hiMessage) + "]", "hi", "", "stop", ""},
	"response events": {
		outputEvents("response.completed", response("completed", outputUsage, thought+","+hiMessage)),
		"hi", "", "stop", "response.completed\"",
	},
	"response events, length": {
		outputEvents("response.incomplete", response("incomplete", outputUsage, hiMessage)),
		"hi", "", "length", "response.incomplete\"",
	},
	"response events, no output": {
		outputEvents("response.completed", response("completed", outputUsage, "")),
		"hi", "", "stop", "response.completed\"",
	},
	"response events, no deltas": {
		named(`{"type":"response.completed","response":` + response("completed", outputUsage, hiMessage) + `}`), "hi", "", "stop", "response.completed\"",
	},
	"response events, call": {
		named(`{"type":"response.function_call_arguments.delta","output_index":3,"delta":"{\"a\""}`,
			`{"type":"response.output_item.done","output_index":3,"item":`+aCall+`}`,
			`{"type":"response.completed","response":`+response("completed", outputUsage, aCall)+`}`), "", calls, "tool_calls", "response.completed\"",
	},
	"response events, call only once": {
		named(`{"type":"response.output_item.done","output_index":3,"item":`+aCall+`}`,
			`{"type":"response.completed","response":`+response("completed", outputUsage, "")+`}`), "", calls, "tool_calls", "response.completed\"",
	},
	"message":                {claude(hiBlocks, "end_turn"), "hi", "", "stop", ""},
	"message, too long":      {claude(hiBlocks, "max_tokens"), "hi", "", "length", ""},
	"message, a sequence":    {claude(hiBlocks, "stop_sequence"), "hi", "", "stop", ""},
	"message, paused":        {claude(hiBlocks, "pause_turn"), "hi", "", "pause_turn", ""},
	"message, call":          {claude(thinking+","+callBlock, "tool_use"), "", calls, "tool_calls", ""},
	"message, call and text": {claude(hiBlocks+","+callBlock, "tool_use"), "hi", calls, "tool_calls", ""},
	"message, call of nothing": {
		claude(`{"type":"tool_use","id":"c","name":"f"}`, "tool_use"),
		"", strings.Replace(calls, `{\"a\":1}`, "{}", 1), "tool_calls", "",
	},
	"message events":           {claudeEvents("end_turn", hiEvents...), "hi", "", "stop", `"stop_reason":"end`},
	"message events, too long": {claudeEvents("max_tokens", hiEvents...), "hi", "", "length", `"stop_reason":"max`},
	"message events, call":     {claudeEvents("tool_use", callEvents...), "", calls, "tool_calls", `"stop_reason":"tool`},
	"message events, no argument": {
		claudeEvents("tool_use", append(append([]string(nil), callEvents[3:5]...), callEvents[7])...),
		"", strings.Replace(calls, `{\"a\":1}`, "{}", 1), "tool_calls", `"stop_reason":"tool`,
	},
	"message events, no names": {
		strings.ReplaceAll(claudeEvents("end_turn", hiEvents...), "event: ", ": "),
		"hi", "", "stop", `"stop_reason":"end`,
	},
	"message events, CRLF":    {strings.ReplaceAll(claudeEvents("end_turn", hiEvents...), "\n", "\r\n"), "hi", "", "stop", `"stop_reason":"end`},
	"message events in lines": {lined(claudeEvents("end_turn", hiEvents...)), "hi", "", "stop", `"stop_reason":"end`},
	"response events in lines": {
		lined(outputEvents("response.completed", response("completed", outputUsage, ""))), "hi", "", "stop", "response.completed\"",
	},
	"chat": {
		strings.Replace(good(`{"content":"hi"}`), "{", `{"usage":{"prompt_tokens":75,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":64}},`, 1),
		"hi", "", "stop", "",
	},
	"chat events": {
		events(chunk("h", ""), chunk("i", "stop"),
			`{"choices":[],"usage":{"prompt_tokens":75,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":64}}}`, "[DONE]"),
		"hi", "", "stop", `"choices":[],`,
	},
}

// Answers of each API say the same in a result, and what they used.
func TestNativeAnswers(t *testing.T) {
	for name, c := range natives {
		t.Run(name, func(t *testing.T) {
			a, err := Read([]byte(c.body), "")
			require.NoError(t, err)
			requireSaid(t, c, a)
			u := a.Usage
			require.Equal(t, []int{75, 9, 84}, []int{u.Prompt, u.Completion, u.Total})
			require.Equal(t, []int{11, 0, 64, 9}, []int{u.Input, u.CacheWrites, u.CacheReads, u.Output})
			require.True(t, u.Final)
			if !strings.HasPrefix(name, "chat") {
				require.Contains(t, []string{"gpt-5-2025", "claude-5"}, a.Model)
			}
		})
	}
}

func requireSaid(t *testing.T, c said, a Answer) {
	t.Helper()
	require.Equal(t, c.text, a.Text)
	require.Equal(t, c.finish, a.FinishReason)
	if c.tools == "" {
		require.Nil(t, a.ToolCalls)
	} else {
		require.JSONEq(t, c.tools, string(a.ToolCalls))
	}
}

// Wherever an answer is cut, it is no answer or all of it, and its usage is final only once it can't grow.
func TestCutAnswers(t *testing.T) {
	for name, c := range natives {
		t.Run(name, func(t *testing.T) {
			for at := range len(strings.TrimRight(c.body, "\r\n")) {
				a, err := Read([]byte(c.body[:at]), "")
				if err != nil {
					f, ok := errors.AsType[*Fault](err)
					require.True(t, ok)
					require.Contains(t, []Kind{NoBody, NotJSON, Broken}, f.Kind, c.body[:at])
					a = f.Answer
				} else {
					requireSaid(t, c, a)
				}
				if u := a.Usage; u != nil && u.Final {
					require.NotEmpty(t, c.known, "at %d", at)
					require.Greater(t, at, strings.LastIndex(c.body, c.known), "%s", c.body[:at])
					require.Equal(t, []int{75, 9}, []int{u.Prompt, u.Completion}, "%s", c.body[:at])
				}
			}
		})
	}
}

// What is no answer says why, in each API.
func TestNativeFaults(t *testing.T) {
	refusal := strings.NewReplacer("output_text", "refusal", `"text":"h"`, `"refusal":"no"`, `{"type":"output_text","text":"i"}`, `""`).Replace(hiMessage)
	filtered := func(body string) string {
		return strings.ReplaceAll(body, `details":null`, `details":{"reason":"content_filter"}`)
	}
	failed := strings.Replace(response("failed", "", ""), `"error":null`, `"error":{"code":"rate_limit_exceeded","message":"slow down"}`, 1)
	overloaded := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}`
	for name, c := range map[string]struct {
		body   string
		kind   Kind
		status int
		code   string
		words  string
	}{
		"response, refused":           {response("completed", outputUsage, refusal), Refused, 0, "", "no"},
		"response, filtered":          {filtered(response("incomplete", outputUsage, hiMessage)), Filtered, 0, "", ""},
		"response, failed":            {failed, Provider, 429, "rate_limit_exceeded", "slow down"},
		"response, failed in silence": {response("failed", "", ""), Broken, 0, "", "failed"},
		"response, cancelled":         {response("cancelled", "", hiMessage), Broken, 0, "", "cancelled"},
		"response, under way":         {response("queued", "", ""), Empty, 0, "", ""},
		"response, empty":             {response("completed", outputUsage, thought), Empty, 0, "", ""},
		"response, used up":           {response("incomplete", outputUsage, thought), Empty, 0, "", "maxTokens"},
		"response, a picture": {
			response("completed", outputUsage, `{"type":"image_generation_call","result":"x"}`),
			Empty, 0, "", "no part that is a text",
		},
		"response, prompt": {strings.Replace(failed, "rate_limit_exceeded", "invalid_prompt", 1), Provider, 422, "invalid_prompt", ""},
		"response, error": {
			`{"error":{"message":"gone","type":"server_error","param":null,"code":null}}`,
			Provider, 0, "server_error", "gone",
		},
		"response events, failed": {outputEvents("response.failed", failed), Provider, 429, "rate_limit_exceeded", "slow down"},
		"response events, filtered": {
			outputEvents("response.incomplete", filtered(response("incomplete", outputUsage, hiMessage))),
			Filtered, 0, "", "",
		},
		"response events, error": {
			named(`{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null,"sequence_number":1}`),
			Provider, 429, "rate_limit_exceeded", "slow down",
		},
		"response events, error last": {
			cut(outputEvents("response.completed", failed), "event: response.completed") + named(`{"type":"error","code":"server_error","message":"gone"}`),
			Provider, 0, "server_error", "gone",
		},
		"response events, cut": {cut(outputEvents("response.completed", failed), "event: response.completed"), Broken, 0, "", "middle"},
		"response events, refused": {
			named(`{"type":"response.refusal.delta","delta":"no"}`, `{"type":"response.completed","response":`+response("completed", "", "")+`}`),
			Refused, 0, "", "no",
		},
		"response events, a loss": {
			strings.Replace(outputEvents("response.completed", response("completed", outputUsage, "")), `"delta":"h"}`, `"delta":"h`, 1),
			Broken, 0, "", "could not be read",
		},
		"message, refused":         {claude(hiBlocks, "refusal"), Refused, 0, "", "hi"},
		"message, empty":           {claude("", "end_turn"), Empty, 0, "", ""},
		"message, used up":         {claude(thinking, "max_tokens"), Empty, 0, "", "maxTokens"},
		"message, context used up": {claude(thinking, "model_context_window_exceeded"), Empty, 0, "", "maxTokens"},
		"message, error":           {overloaded, Provider, 503, "overloaded_error", "Overloaded"},
		"message events, error":    {named(overloaded), Provider, 503, "overloaded_error", "Overloaded"},
		"message events, error within": {
			cut(claudeEvents("end_turn", hiEvents...), "event: message_delta") + named(overloaded),
			Provider, 503, "overloaded_error", "Overloaded",
		},
		"message events, cut":     {cut(claudeEvents("end_turn", hiEvents...), "event: message_delta"), Broken, 0, "", "middle"},
		"message events, begun":   {cut(claudeEvents("end_turn"), "event: content_block"), Broken, 0, "", "middle"},
		"message events, refused": {claudeEvents("refusal", hiEvents...), Refused, 0, "", "hi"},
		"message events, empty":   {claudeEvents("end_turn"), Empty, 0, "", ""},
		"message events, a loss": {
			strings.Replace(claudeEvents("end_turn", hiEvents...), `"text":"h"}}`, `"text":"h"`, 1),
			Broken, 0, "", "could not be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read([]byte(c.body), "")
			f, ok := errors.AsType[*Fault](err)
			require.True(t, ok, err)
			require.Equal(t, c.kind, f.Kind)
			require.Equal(t, c.code, f.Code)
			require.Equal(t, c.status, f.Status)
			require.Contains(t, f.Words, c.words)
		})
	}
	_, err := Read([]byte(cut(claudeEvents("end_turn", hiEvents...), "event: message_delta")), "")
	broken, _ := errors.AsType[*Fault](err)
	require.Equal(t, 75, broken.Answer.Usage.Prompt)
	require.False(t, broken.Answer.Usage.Final)
	require.Equal(t, "claude-5", broken.Answer.Model)
	_, err = Read([]byte(named(`{"type":"response.created","response":`+response("in_progress", "", "")+`}`)), "")
	broken, _ = errors.AsType[*Fault](err)
	require.Equal(t, "gpt-5-2025", broken.Answer.Model)
	f := ReadError([]byte(overloaded))
	require.Equal(t, "overloaded_error", f.Code)
	require.Equal(t, "Overloaded", f.Words)
}

// cut is a text up to a part of it.
func cut(text, at string) string {
	before, _, _ := strings.Cut(text, at)
	return before
}
