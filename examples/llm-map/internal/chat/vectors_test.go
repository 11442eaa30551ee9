package chat

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Vectors are placed by their index, whatever their form.
func TestVectors(t *testing.T) {
	a, err := ReadVectors([]byte(`{"object":"list","data":[{"index":1,"embedding":"AACAPw=="},{"index":0,"embedding":[0.25, -1e-7]}],"model":"e-3",`+
		`"usage":{"prompt_tokens":8,"total_tokens":8}}`), "application/json", 2)
	require.NoError(t, err)
	require.Equal(t, "[0.25, -1e-7]", string(a.Vectors[0]))
	require.Equal(t, `"AACAPw=="`, string(a.Vectors[1]))
	require.Equal(t, "e-3", a.Model)
	require.Equal(t, []int{8, 0, 8}, []int{a.Usage.Prompt, a.Usage.Completion, a.Usage.Total})
	require.True(t, a.Usage.Final)

	a, err = ReadVectors([]byte(`{"data":[{"index":0,"embedding":[1]}]}`), "", 1)
	require.NoError(t, err)
	require.Nil(t, a.Usage)
}

// An answer without one vector for each text is no answer. What it says of the cost is known all the same.
func TestAnswersWithoutVectors(t *testing.T) {
	const one = `{"index":0,"embedding":[1]}`
	for body, want := range map[string]Kind{
		`{"data":[` + one + `]}`:                              Broken,
		`{"data":[]}`:                                         Broken,
		`{"data":[` + one + `,` + one + `]}`:                  Broken,
		`{"data":[` + one + `,{"index":2,"embedding":[1]}]}`:  Broken,
		`{"data":[` + one + `,{"index":-1,"embedding":[1]}]}`: Broken,
		`{"data":[` + one + `,{"embedding":[1]}]}`:            Broken,
		`{"data":[` + one + `,{"index":1}]}`:                  Broken,
		`{"data":[` + one + `,{"index":1,"embedding":null}]}`: Broken,
		`{"data":[` + one + `,{"index":1,"embedding":[]}]}`:   Broken,
		`{"data":[` + one + `,{"index":1,"embedding":true}]}`: Broken,
		`{"data":[` + one + `,{"index":1,"embedding":[1]}`:    NotJSON,
		`<html></html>`: NotJSON,
		``:              NoBody,
		`{"model":"m"}`: NoChoices,
		`{"choices":[{"message":{"content":"hi"}}]}`:             NoChoices,
		`{"error":{"message":"too much","code":"rate_limited"}}`: Provider,
	} {
		_, err := ReadVectors([]byte(body), "application/json", 2)
		f, ok := err.(*Fault) //nolint:errorlint // it is not wrapped
		require.True(t, ok, body)
		require.Equal(t, want, f.Kind, body)
	}
	_, err := ReadVectors([]byte(`{"data":[],"usage":{"prompt_tokens":8,"total_tokens":8}}`), "", 2)
	var f *Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, 8, f.Answer.Usage.Prompt)
	require.Nil(t, f.Answer.Vectors)
}

// The texts of a call for vectors are its input.
func TestBodyOfTexts(t *testing.T) {
	tmpl, err := NewTemplate(Embeddings, "e-3", nil, `{"dimensions":256,"encoding_format":"float"}`)
	require.NoError(t, err)
	body, err := tmpl.Texts([]string{"a <b>", "c\n"})
	require.NoError(t, err)
	const want = `{"model":"e-3","input":["a <b>","c\n"],"dimensions":256,"encoding_format":"float"}`
	require.Equal(t, want, string(body)) //nolint:testifylint // every byte counts
	require.Equal(t, "/embeddings", Embeddings.Path())
}
