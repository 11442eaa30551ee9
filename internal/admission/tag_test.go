package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The tag of a message is the one by which its handler goes: where a field is there twice or in another spelling, the one that most read.
func TestTagsInAPayload(t *testing.T) {
	rule, ok := ParseTag("json user.tenant")
	require.True(t, ok)
	for payload, want := range map[string]string{
		`{"user":{"tenant":"a"}}`: "a", `{"user":{"tenant":43.0}}`: "43", `{"user":{"tenant":"a","tenant":"b"}}`: "b",
		`{"user":{"Tenant":"a"}}`: "a", `{"user":{"Tenant":"a","tenant":"b"}}`: "b", `{"user":{}}`: "", `no JSON`: "", "": "",
	} {
		require.Equal(t, want, rule(nil, func() []byte { return []byte(payload) }, nil), payload)
	}
}
