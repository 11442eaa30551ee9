package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
)

// The demo serves a console, also where another one has the usual port, until it ends.
func TestConsoleOfTheDemo(t *testing.T) {
	store := testenv.NATS(t).URL()
	var addresses []string
	for range 2 {
		address, end, err := serveConsole(t.Context(), store, "demo/1")
		require.NoError(t, err)
		t.Cleanup(end)
		require.True(t, strings.HasSuffix(address, "/#pool=demo%2F1"), address)
		resp, err := http.Get(address)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Contains(t, string(body), "numathrottle console")
		addresses = append(addresses, address)
	}
	require.NotEqual(t, addresses[0], addresses[1])
}
