package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseStatuses(t *testing.T) {
	table, err := parseStatuses(" 4xx=drop, 404=fallback\n410-412=ok 500-599=fail,503=wait ")
	require.NoError(t, err)
	for status, want := range map[int]class{
		400: classDrop, 404: classFallback, 409: classDrop, 410: classOK, 412: classOK, 413: classDrop, 429: classDrop,
		500: classFail, 503: classWait, 200: classOK, 302: classFail, 0: classFail, 600: classRetry, 999: classRetry,
	} {
		require.Equal(t, want, table.Class(status), status)
	}
	require.True(t, table.Has(classFallback))
	require.False(t, table.Has(classRetry), "only by default")
	for _, text := range []string{
		"404", "404=", "=ok", "404=gone", "99=ok", "600=ok", "500-400=ok", "6xx=ok", "0xx=ok",
		"xx=ok", "400-=ok", "-1=ok", "4x=ok", "404 = ok",
	} {
		_, err := parseStatuses(text)
		require.ErrorContains(t, err, "allowed: entries such as", text)
	}
}
