package chat

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a user adds is sent as it is written.
func TestBody(t *testing.T) {
	messages := []Message{{System, "Be <kind>."}, {User, "hi"}}
	five := []Field{{Key: "max_tokens", Value: 5}}
	tmpl, err := NewTemplate(Chat, "o1/x", five, `{"seed":12345678901234567890,"top_p":0.10,"stop":["a"],"x":{"y":null},"ä":1}`)
	require.NoError(t, err)
	body, err := tmpl.Body(messages)
	require.NoError(t, err)
	const prompt = `"messages":[{"role":"system","content":"Be <kind>."},{"role":"user","content":"hi"}]`
	//nolint:testifylint // every byte counts
	require.Equal(t, `{"model":"o1/x",`+prompt+`,"max_tokens":5,"seed":12345678901234567890,"top_p":0.10,"stop":["a"],"x":{"y":null},"ä":1}`, string(body))
	again, err := tmpl.Body(messages[1:])
	require.NoError(t, err)
	require.Contains(t, string(again), `"messages":[{"role":"user","content":"hi"}],"max_tokens":5`)

	for extra, want := range map[string]string{
		`[]`: "is no JSON object", `{"a":1}x`: "is no JSON object", `{`: "is no JSON object",
		`{"model":"y"}`: `sets "model"`, `{"messages":[]}`: `sets "messages"`, `{"max_tokens":7}`: `sets "max_tokens"`, `{"a":1,"a":2}`: `sets "a"`,
	} {
		_, err := NewTemplate(Chat, "m", []Field{{Key: "max_tokens", Value: 5}}, extra)
		require.ErrorContains(t, err, want, extra)
	}
}

// What the extra fields say of the cost counts.
func TestCostOfExtraFields(t *testing.T) {
	tmpl, err := NewTemplate(Chat, "m", nil, `{"max_completion_tokens":70,"n":3,"tools":["12345678"]}`)
	require.NoError(t, err)
	require.Equal(t, 70, tmpl.MaxTokens())
	require.Equal(t, 3, tmpl.Choices())
	require.Equal(t, 12, tmpl.Characters())
	tmpl, err = NewTemplate(Chat, "m", nil, "")
	require.NoError(t, err)
	require.Zero(t, tmpl.MaxTokens())
	require.Equal(t, 1, tmpl.Choices())
}

// Each API has its own fields for the prompt, and for how long an answer may be.
func TestBodyOfEachAPI(t *testing.T) {
	const user = `[{"role":"user","content":"hi"}]`
	all := []Message{{System, "Be <kind>."}, {User, "hi"}}
	for _, c := range []struct {
		api      API
		path     string
		field    Field
		extra    string
		messages []Message
		body     string
		most     int
	}{
		{"", "/chat/completions", Field{Key: "max_tokens", Value: 5}, `{"n":2}`, all[1:], `{"model":"m","messages":` + user + `,"max_tokens":5,"n":2}`, 0},
		{
			Responses, "/responses",
			Field{Key: "temperature", Value: 0.5},
			`{"max_output_tokens":9,"messages":1}`, all,
			`{"model":"m","input":[{"role":"system","content":"Be <kind>."},{"role":"user","content":"hi"}],` +
				`"temperature":0.5,"max_output_tokens":9,"messages":1}`, 9,
		},
		{
			Messages, "/messages",
			Field{Key: "max_tokens", Value: 7, Default: true},
			`{"stream":true}`, all,
			`{"model":"m","system":"Be <kind>.","messages":` + user + `,"stream":true,"max_tokens":7}`, 7,
		},
		{
			Messages, "/messages",
			Field{Key: "max_tokens", Value: 7, Default: true},
			`{"max_tokens":8}`, all[1:],
			`{"model":"m","messages":` + user + `,"max_tokens":8}`, 8,
		},
	} {
		tmpl, err := NewTemplate(c.api, "m", []Field{c.field}, c.extra)
		require.NoError(t, err)
		body, err := tmpl.Body(c.messages)
		require.NoError(t, err)
		require.Equal(t, c.body, string(body))
		require.Equal(t, c.most, tmpl.MaxTokens())
		require.Equal(t, c.path, c.api.Path())
	}
	for api, extra := range map[API]string{Responses: `{"input":1}`, Messages: `{"messages":1}`} {
		_, err := NewTemplate(api, "m", nil, extra)
		require.ErrorContains(t, err, "which is set already")
	}
	tmpl, err := NewTemplate(Messages, "m", nil, `{"system":"äb","tools":[1],"stop":"x"}`)
	require.NoError(t, err)
	require.Equal(t, 7, tmpl.Characters())
	require.Equal(t, 8, tmpl.Bytes())
	require.True(t, tmpl.Sets("system"))
}
