package costrule_test

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
)

func TestNumber(t *testing.T) {
	for text, want := range map[string]int{
		"5": 5, "0": 0, "5.0": 5, "4.2": 5, "\t5": 5, "5\n": 5, "5e2": 500, "5E+2": 500, "+5": 5, "0.001": 1, ".5": 1, "5.": 5, "1e-400": 1, "-0": 0, "0e9": 0,
		"2147483646": 2147483646, "99999999999": costrule.Ungrantable, "1e400": costrule.Ungrantable,
	} {
		n, ok := costrule.Number(text)
		require.True(t, ok, text)
		require.Equal(t, want, n, text)
	}
	n, ok := costrule.Number(" 5 ")
	require.True(t, ok)
	require.Equal(t, 5, n)
	for _, text := range []string{
		"", " ", "-1", "-0.1", "-1e-400", "-1e400", "NaN", "nan", "Inf", "+inf", "infinity", "0x10", "0x1p4",
		"1_000", "1,000", "five", "5 tokens", "5 5", "1e", ".", "e5", "٥",
	} {
		_, ok := costrule.Number(text)
		require.False(t, ok, "%q", text)
	}
}

func TestInteger(t *testing.T) {
	for text, want := range map[string]int{"2": 2, "2.0": 2, "1e2": 100, "-1": -1, "-1.0": -1, "2147483647": 2147483647, "-2147483648": -2147483648} {
		n, ok := costrule.Integer(text)
		require.True(t, ok, text)
		require.Equal(t, want, n, text)
	}
	for _, text := range []string{"", "2.5", "1e12", "-1e12", "1e400", "2147483648", "-2147483649", "x", "0x2", "null", "true", `"2"`} {
		_, ok := costrule.Integer(text)
		require.False(t, ok, text)
	}
}

// Where each message is wrong the log has one line a minute, with how many there were.
func TestComplaints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		var c costrule.Complaint
		for range 100 {
			c.Tell(log, "header cost", "many\nlines", "denied")
		}
		require.Equal(t, 1, bytes.Count(out.Bytes(), []byte("\n")), out.String())
		require.Contains(t, out.String(), "header cost")
		require.Contains(t, out.String(), "denied")
		time.Sleep(time.Minute)
		c.Tell(log, "header cost", "many", "denied")
		require.Contains(t, out.String(), "others=99")
	})
}
