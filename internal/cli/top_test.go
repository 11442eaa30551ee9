package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/operate"
)

// A spent tag whose calls pods refuse does not look like one that asks for nothing.
func TestTopShowsRefusedCalls(t *testing.T) {
	var out bytes.Buffer
	writeTop(&out, "p", nil, []operate.Tag{{Tag: "acme", By: "budget", Pods: 2}, {Tag: "quiet", By: "budget"}}, 0)
	require.Regexp(t, `acme +refused +0/s +0/s +budget +2\n`, out.String())
	require.Regexp(t, `quiet +0/s +0/s +0/s +budget +0\n`, out.String())
}
