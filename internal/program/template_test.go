package program

import (
	"testing"
	"text/template"

	"github.com/stretchr/testify/require"
)

func TestFields(t *testing.T) {
	for text, want := range map[string]string{
		`plain`:                                  "",
		``:                                       "",
		`{{.Key}} {{.JSON.any.thing}}`:           "",
		`{{.Kye}}`:                               "it has .Kye, allowed: .Key, .JSON",
		`{{if .Key}}{{.A}}{{end}}`:               "it has .A,",
		`{{if .Key}}{{else}}{{.B}}{{end}}`:       "it has .B,",
		`{{range .C}}{{end}}`:                    "it has .C,",
		`{{with .JSON}}{{.anything}}{{end}}`:     "",
		`{{with .JSON}}{{else}}{{.D}}{{end}}`:    "it has .D,",
		`{{range .JSON}}{{.anything}}{{end}}`:    "",
		`{{printf "%v" (index .E 0)}}`:           "it has .E,",
		`{{define "t"}}{{.anything}}{{end}}x`:    "",
		`{{range .JSON}}{{else}}{{.F.g}}{{end}}`: "it has .F,",
	} {
		parsed, err := template.New("main").Parse(text)
		require.NoError(t, err)
		if err = TemplateFields(parsed, "Key", "JSON"); want == "" {
			require.NoError(t, err, text)
		} else {
			require.ErrorContains(t, err, want, text)
		}
	}
}
