package httpthrottle_test

import (
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

var (
	span        = regexp.MustCompile("`([^`]+)`")
	headerLine  = regexp.MustCompile(`^[A-Za-z0-9-]+: `)
	tableOfPage = regexp.MustCompile(`(?m)^\| ([^|]+) \| (.+) \| ([^|]+) \|$`)
)

// The answers of services in services.md are understood as the page says.
func TestServices(t *testing.T) {
	page, err := os.ReadFile("services.md")
	require.NoError(t, err)
	hints, classes := 0, 0
	for _, row := range tableOfPage.FindAllStringSubmatch(string(page), -1) {
		who, said, want := row[1], row[2], row[3]
		if want == "wait" && said == "what it says" || want == "class" {
			continue
		}
		a := httpthrottle.Answer{Status: http.StatusTooManyRequests, Header: http.Header{}, At: came}
		for _, s := range span.FindAllStringSubmatch(said, -1) {
			if headerLine.MatchString(s[1]) {
				name, value, _ := strings.Cut(s[1], ": ")
				a.Header.Add(name, value)
			} else {
				a.Body = []byte(s[1])
			}
		}
		status, _, _ := strings.Cut(said, " ")
		switch want {
		case "no refusal", "stop", "wait", "overload":
			classes++
			a.Status, err = strconv.Atoi(status)
			require.NoError(t, err, said)
			for _, classify := range llmClassifiers {
				r, refused := classify(a)
				require.Equal(t, want != "no refusal", refused, "%s: %s", who, said)
				require.Equal(t, strings.TrimPrefix(want, "no refusal"), string(r.Class), "%s: %s", who, said)
				if want == "stop" && a.Status != http.StatusPaymentRequired && !strings.HasPrefix(who, "Gemini") {
					require.NotEmpty(t, r.Code, said)
				}
			}
			if want == "wait" && !strings.HasPrefix(said, "402") {
				g, refused := httpthrottle.Generic(a)
				require.True(t, refused, "%s: %s", who, said)
				require.Equal(t, httpthrottle.Wait, g.Class)
				require.Equal(t, a.Status != http.StatusInternalServerError, g.NotProcessed, said)
			}
			continue
		}
		hints++
		d, _, ok := a.RetryAfter()
		got := "nothing"
		if ok {
			got = d.String()
		}
		require.Equal(t, want, got, "%s: %s", who, said)
	}
	require.Greater(t, hints, 35)
	require.Greater(t, classes, 75)
}
