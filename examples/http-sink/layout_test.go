package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

func TestWhatStandsAroundABatch(t *testing.T) {
	for name, c := range map[string]struct {
		vars env
		want []string
	}{
		"an object around an array": {
			env{"FORMAT": "json-array", "BODY_PREFIX": `{"events":`, "BODY_SUFFIX": `,"v":1}`}, []string{`{"events":[1,2,3],"v":1}`},
		},
		"lines with a head":  {env{"FORMAT": "ndjson", "BODY_PREFIX": "{}\n"}, []string{"{}\n1\n2\n3\n"}},
		"a text":             {env{"FORMAT": "raw", "BODY_PREFIX": "<", "SEPARATOR": " | ", "BODY_SUFFIX": ">"}, []string{"<1 | 2 | 3>"}},
		"a separator, alone": {env{"FORMAT": "raw", "SEPARATOR": "\n"}, []string{"1\n2\n3"}},
		"no more than fits":  {env{"FORMAT": "raw", "BODY_PREFIX": "<", "SEPARATOR": "--", "BODY_SUFFIX": ">", "MAX_BYTES": "6"}, []string{"<1--2>", "<3>"}},
		"each by itself":     {env{"BODY_PREFIX": "<", "BODY_SUFFIX": ">"}, []string{"<1>", "<2>", "<3>"}},
		"another type than JSON": {
			env{"FORMAT": "json-array", "BODY_PREFIX": "data=", "CONTENT_TYPE": "application/x-www-form-urlencoded"}, []string{"data=[1,2,3]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			service := startService(t, nil)
			vars := c.vars
			vars["URL"] = service.URL
			r := start(t, vars)
			require.Equal(t, all(3, dataplane.SinkSuccess), statuses(r.do(messages("1", "2", "3")...)))
			require.ElementsMatch(t, c.want, service.Bodies())
		})
	}
}

func TestLayoutsThatAreRefused(t *testing.T) {
	_, err := loaded(t, env{"URL": "http://h", "FORMAT": "json-array", "BODY_PREFIX": `{"events":`, "SEPARATOR": ","})
	require.ErrorContains(t, err, "separator is set without format: raw")
	require.ErrorContains(t, withoutSources(err), `bodyPrefix and bodySuffix are "{\"events\":" and "", which make no JSON around an array, allowed: such as`)
}
