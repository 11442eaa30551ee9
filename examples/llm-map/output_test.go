package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutput(t *testing.T) {
	for _, c := range []struct{ name, output, payload, answer, want string }{
		{
			"the page's", `{"message":{{json .Message}},"result":{{json .Result}}}`, `{"subject": "late", "n": 12345678901234567890}`, "complaint",
			`{"message":{"n":12345678901234567890,"subject":"late"},"result":{"attempts":1,"finish_reason":"stop","model":"m-1","text":"complaint",` +
				`"usage":{"completion_tokens":3,"prompt_tokens":7,"total_tokens":10}}}`,
		},
		{"a message that is no JSON", `{"message":{{json .Message}}}`, `a "text"`, "x", `{"message":"a \"text\""}`},
		{"the answer alone", `{{.Answer}}`, "x", "hello", "hello"},
		{"nothing", `{{if eq .Answer "yes"}}{{.Text}}{{end}}`, "x", "no", ""},
		{"the answer, parsed", `{{json .AnswerJSON.label}} {{.JSON.id}}`, `{"id":7}`, `{"label":["a","b"]}`, `["a","b"] 7`},
		{"numbers", `{{.Model}} {{.Usage.total_tokens}} {{join "/" .Keys}}`, "x", "y", "m-1 10 k"},
		{"a dot that is another", `{{range .AnswerJSON}}<{{.Name}}>{{end}}{{with .Keys}}{{index . 0}}{{end}}`, "x", `[{"Name":"a"},{"Name":"b"}]`, "<a><b>k"},
		{"neither JSON nor text", `{{len .Text}}`, "\xff\xfe", "y", "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := mustHandler(t, testSettings(func(s *settings) { s.Output, s.Prompt = c.output, "hi" }), nil, answers(says(c.answer, 7, 3)), nil)
			out := h.Map(t.Context(), []string{"k"}, datum{value: c.payload}).Items()
			require.Len(t, out, 1)
			require.Equal(t, c.want, string(out[0].Value()))
			require.Equal(t, []string{"k"}, out[0].Keys())
			require.Empty(t, out[0].Tags())
		})
	}
}

// A result that the template does not fit keeps its answer, and is an error for those who look at the tag.
func TestOutputThatDoesNotFit(t *testing.T) {
	for output, want := range map[string]string{
		`{{.AnswerJSON.label}}`: "AnswerJSON", `{{.JSON.a}}`: "JSON", `{{.Result.tool_calls}}`: "tool_calls", `{{index .Keys 5}}`: "out of range",
		`{{define "x"}}{{.Text}}{{template "x" .}}{{end}}{{template "x" .}}`: "depth",
	} {
		e := answers(says("plain", 7, 3))
		r := ask(t.Context(), t, mustHandler(t, testSettings(func(s *settings) { s.Output = output }), nil, e, nil), "x")
		require.Equal(t, codeBadOutput, r.Error.Code)
		require.Contains(t, r.Error.Message, want)
		require.Equal(t, "plain", r.Text)
		require.Equal(t, 10, r.Usage.TotalTokens)
		require.Equal(t, 1, e.count(), "the answer was paid for once")
	}
}

// An error is what it is without the template, with the message beside it where input says so.
func TestErrorsHaveNoOutput(t *testing.T) {
	s := testSettings(func(s *settings) { s.Output, s.Input, s.MaxAttempts = "{{.Answer}}", inputJSON, 1 })
	r := ask(t.Context(), t, mustHandler(t, s, nil, answers(refuses(400, "", "")), nil), `{"a":1}`)
	require.Equal(t, "400", r.Error.Code)
	require.JSONEq(t, `{"a":1}`, string(r.Input))
}

func TestOutputsThatAreRefused(t *testing.T) {
	for output, want := range map[string]string{
		`{{.Anser}}`: "it has .Anser, allowed: .Text, .JSON", `{{if .Answer}}{{json .Reslt}}{{end}}`: "it has .Reslt",
		`{{range .Keys}}{{else}}{{.Nobody}}{{end}}`: "it has .Nobody", `{{json (index .Kees 0)}}`: "it has .Kees",
		`{{printf "%d" 1}}`: `function "printf" not defined`, `{{.Answer`: "unclosed action",
	} {
		clearEnv(t)
		t.Setenv("LLM_MAP_MODEL", "m")
		t.Setenv("LLM_MAP_API_KEY", canary)
		t.Setenv("LLM_MAP_OUTPUT", output)
		_, err := loadSettings()
		require.ErrorContains(t, err, "output is no template that can be used: ", output)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "allowed: "+anOutput)
	}
	t.Setenv("LLM_MAP_OUTPUT", "{{.Answer}}")
	t.Setenv("LLM_MAP_OUTPUT_FILE", "/nowhere/output")
	_, err := loadSettings()
	require.ErrorContains(t, err, "outputFile is set, and so is output (LLM_MAP_OUTPUT_FILE; output: LLM_MAP_OUTPUT), allowed: one of them")
	require.ErrorContains(t, err, `outputFile is "/nowhere/output", which cannot be read`)
}
