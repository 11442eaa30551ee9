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
	writeTop(&out, "p", nil, []operate.Tag{{Tag: "acme", By: "budget", Pods: 2}, {Tag: "quiet", By: "budget"}}, 0, "/s")
	require.Regexp(t, `acme +refused +0/s +0/s +budget +2\n`, out.String())
	require.Regexp(t, `quiet +0/s +0/s +0/s +budget +0\n`, out.String())
}

// Of a limit on calls in flight the amounts are calls.
func TestTopOfCallsInFlight(t *testing.T) {
	var out bytes.Buffer
	r := &operate.Reserved{Rate: 4, Limit: 16, Calls: true}
	writeTop(&out, "p", r, []operate.Tag{{Tag: "acme", Demand: 9, Used: 6, Target: 6, By: "total", Pods: 2}}, 0, "")
	require.Contains(t, out.String(), "4 of 16 calls in flight are reserved")
	require.Regexp(t, `acme +9 +6 +6 +rate_cap +2\n`, out.String())
}
