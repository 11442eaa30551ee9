package main

import (
	"errors"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// withoutSources is an error without where its settings came from.
func withoutSources(err error) error {
	return errors.New(regexp.MustCompile(` \((?:[a-zA-Z]+: )?(?:HTTP_SINK_|NUMATHROTTLE_|/)[^()]*\)`).ReplaceAllString(err.Error(), ""))
}

// A fault of several settings says where each was set.
func TestFaultsNameWhereSettingsCameFrom(t *testing.T) {
	t.Run("one message for one fault", func(t *testing.T) {
		_, err := loaded(t, env{"URRL": "http://h"})
		require.EqualError(t, err, "numathrottle: HTTP_SINK_URRL is not a variable of http-sink; did you mean HTTP_SINK_URL?")
	})
	_, err := loaded(t, env{"URL": "http://h", "BEARER_TOKEN": canary, "BEARER_TOKEN_FILE": "/x", "METHOD": "GET", "BODY": "x"})
	require.ErrorContains(t, err, "bearerTokenFile is set, and so is bearerToken (HTTP_SINK_BEARER_TOKEN_FILE; bearerToken: HTTP_SINK_BEARER_TOKEN), ")
	require.ErrorContains(t, err, "body is set, but the method is GET, which sends nothing (HTTP_SINK_BODY; method: HTTP_SINK_METHOD), ")
	require.NotContains(t, err.Error(), canary)
}
