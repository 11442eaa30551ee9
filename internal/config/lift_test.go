package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program has settings of its own beside those of another table.
type program struct {
	Prompt string
	Model  string
	Inner  settings
}

var programTable = append([]Field[*program]{
	{Key: "model", Prefix: "PROGRAM_", Allowed: "a text", Value: Text(func(p *program) *string { return &p.Model })},
	{Key: "prompt", Prefix: "PROGRAM_", Allowed: "lines", Value: Lines(func(p *program) *string { return &p.Prompt })},
}, Lift(table, func(p *program) *settings { return &p.Inner })...)

func TestTwoTablesAreReadAsOne(t *testing.T) {
	var p program
	faults := Load(programTable, []string{
		"PROGRAM_MODEL=m", "PROGRAM_PROMPT=two\nlines", "NUMATHROTTLE_MAX=7", "NUMATHROTTLE_STORE_PASSWORD=" + canary,
		// What Kubernetes sets for a Service named program-gateway.
		"PROGRAM_GATEWAY_SERVICE_HOST=10.0.0.1", "PROGRAM_GATEWAY_SERVICE_PORT=80", "PROGRAM_GATEWAY_PORT=tcp://10.0.0.1:80",
	}, &p)
	require.Empty(t, faults)
	require.Equal(t, program{Model: "m", Prompt: "two\nlines", Inner: settings{Max: 7, secret: canary}}, p)
	require.Equal(t, []Setting{{"model", "m"}, {"prompt", "two\nlines"}, {"max", "7"}, {"storePassword", Redacted}}, Show(programTable, &p))
	require.Contains(t, Table(programTable), "`PROGRAM_MODEL`")
	require.Contains(t, Table(programTable), "`NUMATHROTTLE_MAX`")
}

func TestFaultsOfTwoTablesAreToldTogether(t *testing.T) {
	var p program
	var lines []string
	for _, fault := range Load(programTable, []string{
		"PROGRAM_MODEL= m", "PROGRAM_PROMPT=a\x00", "PROGRAM_MODELL=m", "NUMATHROTTLE_MODEL=m", "NUMATHROTTLE_MAX=101",
	}, &p) {
		lines = append(lines, fault.Error())
	}
	require.Equal(t, []string{
		`numathrottle: model is " m" (PROGRAM_MODEL), allowed: a text`,
		`numathrottle: prompt is "a\x00" (PROGRAM_PROMPT), allowed: lines`,
		`numathrottle: max is "101" (NUMATHROTTLE_MAX), allowed: 0 to 100`,
		`numathrottle: NUMATHROTTLE_MODEL is not a variable of program; did you mean PROGRAM_MODEL?`,
		`numathrottle: PROGRAM_MODELL is not a variable of program; did you mean PROGRAM_MODEL?`,
	}, lines)
	require.Zero(t, p)
	require.Len(t, Check(programTable, &program{Prompt: strings.Repeat("x", maxLines+1), Inner: settings{Max: -1}}), 2)
}

func TestEndpoint(t *testing.T) {
	field := []Field[*program]{{Key: "model", Allowed: "a URL", Value: Endpoint(func(p *program) *string { return &p.Model })}}
	for _, good := range []string{"http://h", "https://h:8443/v1/", "http://[::1]:80/v1"} {
		p := program{Model: good}
		require.Empty(t, Check(field, &p), good)
		require.Equal(t, []Setting{{"model", good}}, Show(field, &p))
	}
	for _, bad := range []string{
		"h", "ftp://h", "http://", "http://:80", "https://user:" + canary + "@h", "https://h/?key=" + canary, "https://h?",
		"https://h/#" + canary, "https://h/#",
		"https:" + canary, "http://h/\n",
	} {
		p := program{Model: bad}
		faults := Check(field, &p)
		require.Len(t, faults, 1, bad)
		require.EqualError(t, faults[0], "numathrottle: model is not as it should be (not shown), allowed: a URL")
		require.Equal(t, []Setting{{"model", Redacted}}, Show(field, &p))
	}
}
