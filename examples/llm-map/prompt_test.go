package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrompts(t *testing.T) {
	const payload = `{"name":"Ada","age":36,"big":12345678901234567890,"tags":["a","b"]}`
	for _, c := range []struct{ name, template, payload, want string }{
		{"the payload", `{{.Text}}`, "hi {{.Text}}", "hi {{.Text}}"},
		{"lines stay", "a\n\tb", "x", "a\n\tb"},
		{"JSON", `{{.JSON.name}} is {{.JSON.age}}, {{.JSON.big}}`, payload, "Ada is 36, 12345678901234567890"},
		{"JSON again", `{{json .JSON.tags}} {{join "+" .JSON.tags}} {{len .JSON.tags}}`, payload, `["a","b"] a+b 2`},
		{"keys and headers", `{{join "/" .Keys}} {{.Headers.tenant}} {{.EventTime}}`, "x", "k1/k2 t1 2023-11-14T22:13:20Z"},
		{"functions", `{{trim .Text | upper | cut 3}}{{if eq .Text " äöüß "}}!{{end}}`, " äöüß ", "ÄÖÜ!"},
		{"sub-templates", `{{define "x"}}[{{.JSON.name}}]{{end}}{{template "x" .}}`, payload, "[Ada]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := newPrompt("", c.template)
			require.NoError(t, err)
			messages, err := p.messages([]string{"k1", "k2"}, datum{value: c.payload, headers: map[string]string{"tenant": "t1"}})
			require.NoError(t, err)
			require.Len(t, messages, 1)
			require.Equal(t, c.want, messages[0].Content)
		})
	}
}

// Templates reach nothing but the message.
func TestTemplatesAreConfined(t *testing.T) {
	for _, template := range []string{
		`{{printf "%1000000000d" 1}}`, `{{println .Text}}`, `{{call .Text}}`, `{{html .Text}}`, `{{urlquery .Text}}`,
		`{{js .Text}}`, `{{env "HOME"}}`, `{{define "x"}}{{printf .Text}}{{end}}{{template "x" .}}`, `{{.Text`, `{{if}}`,
		`{{.Txt}}`, `{{.Key}}`, `{{if .Answer}}{{end}}`,
	} {
		_, err := newPrompt(template, "x")
		require.ErrorContains(t, err, "system is no template that can be used", template)
		_, err = newPrompt("", template)
		require.ErrorContains(t, err, "prompt is no template that can be used", template)
	}
}

// A message that the template cannot be made of is answered with an error, and nothing of
// it is ever taken for a template.
func TestMessagesWithoutAPrompt(t *testing.T) {
	for _, c := range []struct{ name, template, payload, want string }{
		{"no JSON", `{{.JSON.name}}`, "plain", "JSON"},
		{"two JSON values", `{{.JSON.name}}`, `{"name":"a"}{"name":"b"}`, "JSON"},
		{"no such key", `{{.JSON.name}}`, `{}`, "name"},
		{"no such field", `{{$.Secrets}}`, "x", "Secrets"},
		{"not a list", `{{join "," .Text}}`, "x", "allowed: a list"},
		{"out of range", `{{index .JSON 3}}`, `[1]`, "out of range"},
		{"no method", `{{.EventTime.Unix}}`, "x", "Unix"},
		{"empty", `{{.Text}}`, "", "it is empty"},
		{"not UTF-8", `{{.Text}}`, "\xff", "not UTF-8"},
		{"endless", `{{define "x"}}{{.Text}}{{template "x" .}}{{end}}{{template "x" .}}`, strings.Repeat("x", 1<<16), "longer than 8388608 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := mustHandler(t, testSettings(func(s *settings) { s.Prompt = c.template }), nil, answers(says("hi", 1, 1)), nil)
			r := ask(t.Context(), t, h, c.payload)
			require.NotNil(t, r.Error)
			require.Equal(t, codeBadPrompt, r.Error.Code)
			require.Contains(t, r.Error.Message, c.want)
		})
	}
}
