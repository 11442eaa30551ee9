package chat

import (
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
)

// good is an answer with a message of this form.
func good(message string) string {
	return `{"model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":"stop"}]}`
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

// What counts is what a field means, not its type, and nothing that is not asked for makes an answer a bad one.
func TestGoodAnswers(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"a text":               {good(`{"role":"assistant","content":"hi"}`), "hi"},
		"parts":                {good(`{"content":[{"type":"text","text":"h"},{"type":"output_text","text":"i"}]}`), "hi"},
		"parts that are texts": {good(`{"content":["h","i"]}`), "hi"},
		"a part by itself":     {good(`{"content":{"type":"text","text":"hi"}}`), "hi"},
		"a text in a text":     {good(`{"content":[{"type":"text","text":{"value":"hi","annotations":[]}}]}`), "hi"},
		"thoughts":             {good(`{"content":[{"type":"thinking","thinking":[{"text":"hm"}]},{"type":"text","text":"hi"}],"reasoning":"hm"}`), "hi"},
		"a picture beside it":  {good(`{"content":[{"type":"image_url","image_url":{}},{"type":"text","text":"hi"}]}`), "hi"},
		"a number":             {good(`{"content":42}`), "42"},
		"a message as a text":  {good(`"hi"`), "hi"},
		"an old completion":    {`{"choices":[{"text":"hi","index":0,"finish_reason":"length"}]}`, "hi"},
		"empty refusal":        {good(`{"content":"hi","refusal":""}`), "hi"},
		"null refusal":         {good(`{"content":"hi","refusal":null,"tool_calls":null,"function_call":null}`), "hi"},
		"empty errors":         {strings.Replace(good(`{"content":"hi"}`), `"model"`, `"error":{"code":null,"message":""},"errors":[],"model"`, 1), "hi"},
		"odd types": {`{"id":7,"created":"1700000000","system_fingerprint":{"a":1},"object":null,"service_tier":[],"usage":null,` +
			`"choices":[{"index":"0","message":{"role":1,"content":"hi","annotations":{}},"logprobs":"x","finish_reason":null}]}`, "hi"},
		"filters of Azure": {`{"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false}}}],"choices":[{` +
			`"content_filter_results":{"error":{"code":"content_filter_error","message":"timeout"},"hate":{"filtered":false,"severity":"safe"}},` +
			`"message":{"content":"hi"},"finish_reason":"stop"}]}`, "hi"},
		"an unknown ending": {strings.Replace(good(`{"content":"hi"}`), `"stop"`, `"eos_token"`, 1), "hi"},
		"several choices":   {`{"choices":[null,{"index":1,"message":{"content":"b"}},{"index":0,"message":{"content":"a"}}]}`, "a"},
		"keys twice":        {`{"choices":null,"choices":[{"message":{"content":"no","content":"hi"}}]}`, "hi"},
		"keys in capitals":  {`{"Choices":null,"choices":[{"Message":{},"message":{"content":"hi","Content":null}}],"CHOICES":[]}`, "hi"},
		"a byte-order mark": {"\xef\xbb\xbf" + good(`{"content":"hi"}`), "hi"},
		"space around":      {"\r\n \n" + good(`{"content":"hi"}`) + "\r\n\x00", "hi"},
		"something behind":  {good(`{"content":"hi"}`) + "}<!-- proxy -->", "hi"},
		"compressed":        {zipped(good(`{"content":"hi"}`)), "hi"},
		"a list of one":     {"[" + good(`{"content":"hi"}`) + "]", "hi"},
		"Ollama's own":      {`{"model":"m","message":{"role":"assistant","content":"hi"},"done":true}`, "hi"},
		"not quite UTF-8":   {good("{\"content\":\"h\xff\"}"), "h\ufffd"},
		"events": {": PROCESSING\n\n" + `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"content":"h"}},{"index":1,"delta":{"content":"x"}}]}` + "\r\n\r\n" + "event: x\ndata:{broken\n\n" +
			`data: {"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"i"}]},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n", "hi"},
		"an answer as one event": {"data: " + good(`{"content":"hi"}`) + "\n\n", "hi"},
		"events without an end":  {"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]", "hi"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := Read([]byte(c.body), "application/json")
			require.NoError(t, err)
			require.Equal(t, c.want, a.Text)
		})
	}
}

// What is no answer says what it is instead.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		kind  Kind
		code  string
		words string // of which it holds these
	}{
		"nothing":             {"", NoBody, "", ""},
		"space":               {" \r\n", NoBody, "", ""},
		"a page":              {"<!DOCTYPE html><html>secret</html>", NotJSON, "", "a page (HTML or XML), of type text/html, 34 bytes"},
		"a text":              {"it works", NotJSON, "", "something else"},
		"the half of it":      {good(`{"content":"hi"}`)[:50], NotJSON, "", "ends in the middle"},
		"another format":      {"\x28\xb5\x2f\xfd....", NotJSON, "", "a compression that was not asked for"},
		"a number":            {"7", NotJSON, "", "JSON, but no object"},
		"no value":            {"null", NotJSON, "", "JSON, but no object"},
		"no choices":          {`{"id":"x","choices":[]}`, NoChoices, "", ""},
		"null choices":        {`{"id":"x","choices":null,"usage":{"total_tokens":3}}`, NoChoices, "", ""},
		"choices of nothing":  {`{"choices":[null,7]}`, NoChoices, "", ""},
		"empty":               {good(`{"content":""}`), Empty, "", ""},
		"null":                {good(`{"content":null}`), Empty, "", ""},
		"no content":          {good(`{}`), Empty, "", ""},
		"no message":          {good(`null`), Empty, "", ""},
		"no parts":            {good(`{"content":[]}`), Empty, "", ""},
		"a picture alone":     {good(`{"content":[{"type":"image_url","image_url":{}}]}`), Empty, "", "no part that is a text"},
		"used up":             {strings.Replace(good(`{"content":""}`), `"stop"`, `"length"`, 1), Empty, "", "maxTokens"},
		"a refusal":           {good(`{"content":null,"refusal":"I cannot"}`), Refused, "", "I cannot"},
		"a part that refuses": {good(`{"content":[{"type":"refusal","refusal":"I cannot"}]}`), Refused, "", "I cannot"},
		"refused at the end":  {strings.Replace(good(`{"content":"no"}`), `"stop"`, `"refusal"`, 1), Refused, "", "no"},
		"filtered":            {strings.Replace(good(`{"content":"par"}`), `"stop"`, `"content_filter"`, 1), Filtered, "", ""},
		"filtered elsewhere":  {strings.Replace(good(`{"content":null}`), `"stop"`, `"SAFETY"`, 1), Filtered, "", ""},
		"filtered by Azure": {`{"choices":[{"finish_reason":"content_filter","message":{},"content_filter_results":{"violence":{"filtered":true},` +
			`"hate":{"filtered":true},"sexual":{"filtered":false}}}]}`, Filtered, "", "hate, violence"},
		"broken":           {strings.Replace(good(`{"content":"par"}`), `"stop"`, `"error"`, 1), Broken, "", "finish_reason error"},
		"a choice's error": {`{"choices":[{"error":{"code":502,"message":"gone"},"finish_reason":"error","message":{"content":"p"}}]}`, Provider, "", "gone"},
		"an error":         {`{"error":{"message":"no credit","code":402},"user_id":"u"}`, Provider, "", "no credit"},
		"an error, a word": {`{"error":{"message":"slow down","code":"rate_limit_exceeded","type":"requests"}}`, Provider, "rate_limit_exceeded", "slow down"},
		"an error, a text": {`{"error":"model is loading","error_type":"overloaded"}`, Provider, "overloaded", "model is loading"},
		"within another":   {`{"error":{"error":{"type":"overloaded_error","message":"Overloaded"}}}`, Provider, "overloaded_error", "Overloaded"},
		"in a list":        {`[{"error":{"status":"RESOURCE_EXHAUSTED","code":429,"message":"quota"}}]`, Provider, "RESOURCE_EXHAUSTED", "quota"},
		"unwrapped":        {`{"object":"error","message":"too long","type":"BadRequestError","code":400}`, Provider, "BadRequestError", "too long"},
		"of a framework":   {`{"detail":[{"loc":["body"],"msg":"field required"}]}`, Provider, "", "field required"},
		"of MiniMax":       {`{"choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`, Provider, "", "insufficient balance"},
		"of an upstream":   {`{"error":{"message":"upstream","code":429,"metadata":{"raw":"{\"x\":1}"}}}`, Provider, "", `upstream: {"x":1}`},
		"beside an answer": {strings.Replace(good(`{"content":"par"}`), `"model"`, `"error":{"message":"aborted"},"model"`, 1), Provider, "", "aborted"},
		"an event":         {"data: {}\n\n" + `data: {"error":{"code":"server_error","message":"x"}}`, Provider, "server_error", "x"},
		"events, cut off":  {"data: {\"choices\":[{\"delta\":{\"content\":\"h\"}}]}\n\n", Broken, "", "middle"},
		"no event":         {"data: [DONE]\n\n", NoChoices, "", ""},
		"comments alone":   {": PROCESSING\n\n", Broken, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read([]byte(c.body), "text/html; charset=utf-8")
			f, ok := errors.AsType[*Fault](err)
			require.True(t, ok, err)
			require.Equal(t, c.kind, f.Kind)
			require.Equal(t, c.code, f.Code)
			require.Contains(t, f.Words, c.words)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

// The status that an error stands for, whatever that of the answer is.
func TestStatusOfAnError(t *testing.T) {
	for body, want := range map[string]int{
		`{"error":{"code":429,"message":"x"}}`:                               429,
		`{"error":{"code":"429","message":"x"}}`:                             429,
		`{"error":{"code":503.0,"message":"x"}}`:                             503,
		`{"error":{"status":401,"message":"x"}}`:                             401,
		`{"error":{"type":"insufficient_quota","message":"x"}}`:              429,
		`{"error":{"type":"overloaded_error","message":"x"}}`:                503,
		`{"error":{"code":"x","type":"authentication_error","message":"x"}}`: 401,
		`{"error":{"code":"context_length_exceeded","message":"x"}}`:         422,
		`{"error":{"code":"model_not_found","message":"x"}}`:                 404,
		`{"error":{"code":1302,"message":"x"}}`:                              0,
		`{"error":{"message":"x"}}`:                                          0,
	} {
		_, err := Read([]byte(body), "")
		f, ok := errors.AsType[*Fault](err)
		require.True(t, ok, body)
		require.Equal(t, want, f.Status, body)
		require.JSONEq(t, body, string(f.Body))
	}
}

func TestUsage(t *testing.T) {
	seven := &Usage{Usage: usage.Usage{Input: 7, Output: 3, Total: 10}, Prompt: 7, Completion: 3, Total: 10, Final: true}
	for said, want := range map[string]*Usage{
		`{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}`:      seven,
		`{"prompt_tokens":7.0,"completion_tokens":"3","total_tokens":1e1}`: seven,
		`{"input_tokens":7,"output_tokens":3}`:                             seven,
		`{"prompt_tokens":null,"completion_tokens":-3,"total_tokens":"x"}`: nil,
		`null`: nil, `[]`: nil, `"many"`: nil, `{}`: nil,
	} {
		a, err := Read([]byte(`{"choices":[{"text":"hi"}],"usage":`+said+`}`), "")
		require.NoError(t, err)
		if a.Usage != nil { // the flags are tested in package usage
			a.Usage.HasInput, a.Usage.HasOutput, a.Usage.HasTotal = false, false, false
		}
		require.Equal(t, want, a.Usage, said)
	}
	a, err := Read([]byte(`{"choices":[{"text":"hi","usage":{"total_tokens":5}}],"usage":null}`), "")
	require.NoError(t, err)
	require.Equal(t, 5, a.Usage.Total)
}

// Calls of tools are an answer, in one piece or in many.
func TestToolCalls(t *testing.T) {
	const whole = `[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]`
	a, err := Read([]byte(good(`{"content":null,"tool_calls":`+whole+`}`)), "")
	require.NoError(t, err)
	require.JSONEq(t, whole, string(a.ToolCalls))
	a, err = Read([]byte(`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","type":"function",`+
		`"function":{"name":"f","arguments":"{\"a\""}}]}}]}`+"\n\n"+
		`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n"), "")
	require.NoError(t, err)
	require.JSONEq(t, whole, string(a.ToolCalls))
	a, err = Read([]byte(good(`{"function_call":{"name":"f","arguments":"{}"}}`)), "")
	require.NoError(t, err)
	require.JSONEq(t, `[{"type":"function","function":{"name":"f","arguments":"{}"}}]`, string(a.ToolCalls))
}

func TestLine(t *testing.T) {
	require.Equal(t, "a b c", Line("  a\n\tb\x00c "))
	require.Equal(t, strings.Repeat("ä", 300)+"...", Line(strings.Repeat("ä", 400)))
}

// No body makes it panic, and what is no answer is a Fault.
func FuzzRead(f *testing.F) {
	for _, body := range []string{
		good(`{"content":[{"type":"text","text":"h"}]}`), `{"error":{"error":[{"code":1}]}}`, "data: {}\n\n:", zipped("{}"),
		`{"choices":[{"delta":{"tool_calls":[{"index":9}]}}]}`,
		`data: {"choices":[{"delta":{"tool_calls":[{"index":9,"function":{"arguments":7}}]}}]}`, "\xef\xbb\xbf[[]]", `{"base_resp":{"status_code":"1"}}`,
		events(both("h", "h", ""), message("hi", "stop"), "[DONE]"), ndjson(chunk("h", ""), chunk("i", "MAX_TOKENS")), "event: error\rdata: overloaded\r\r",
		"data: {\ndata: \"choices\":[NaN,-Infinity]\ndata: }\n\n", "[" + chunk("h", "") + ",{}]{\"error\":true}", "{\"a\n\":Infinity}\n{\"success\":false}",
		`{"fault":{"faultstring":"x","detail":{"errorcode":"y"}}}`, `{"__type":"a#b","Message":"m"}`, `{"message":{"role":"a","content":"b"},"done":false}`,
	} {
		f.Add([]byte(body))
	}
	for _, c := range natives {
		f.Add([]byte(c.body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		_ = ReadError(body)
		if _, err := Read(body, "x"); err != nil {
			_, ok := errors.AsType[*Fault](err)
			require.True(t, ok)
		}
	})
}
