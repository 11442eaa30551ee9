package verdict

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	table, err := Parse(" 4xx=drop, 404=fallback\n410-412=ok 500-599=fail,503=wait ")
	require.NoError(t, err)
	for status, want := range map[int]Class{
		400: Drop, 404: Fallback, 409: Drop, 410: OK, 412: OK, 413: Drop, 429: Drop, 500: Fail, 503: Wait, 200: OK, 302: Fail, 0: Fail, 600: Retry, 999: Retry,
	} {
		require.Equal(t, want, table.Class(status), status)
	}
	require.True(t, table.Has(Fallback))
	require.False(t, table.Has(Retry), "only by default")
	for _, text := range []string{
		"404", "404=", "=ok", "404=gone", "99=ok", "600=ok", "500-400=ok", "6xx=ok", "0xx=ok",
		"xx=ok", "400-=ok", "-1=ok", "4x=ok", "404 = ok",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, "allowed: entries such as", text)
	}
}
