package chat

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a user adds is sent as it is written.
func TestBody(t *testing.T) {
	messages := []Message{{System, "Be <kind>."}, {User, "hi"}}
	tmpl, err := NewTemplate("o1/x", []Field{{"max_tokens", 5}}, `{"seed":12345678901234567890,"top_p":0.10,"stop":["a"],"x":{"y":null},"ä":1}`)
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
		_, err := NewTemplate("m", []Field{{"max_tokens", 5}}, extra)
		require.ErrorContains(t, err, want, extra)
	}
}

// What the extra fields say of the cost counts.
func TestCostOfExtraFields(t *testing.T) {
	tmpl, err := NewTemplate("m", nil, `{"max_completion_tokens":70,"n":3,"tools":["12345678"]}`)
	require.NoError(t, err)
	require.Equal(t, 70, tmpl.MaxTokens())
	require.Equal(t, 3, tmpl.Choices())
	require.Equal(t, 12, tmpl.Characters())
	tmpl, err = NewTemplate("m", nil, "")
	require.NoError(t, err)
	require.Zero(t, tmpl.MaxTokens())
	require.Equal(t, 1, tmpl.Choices())
}
