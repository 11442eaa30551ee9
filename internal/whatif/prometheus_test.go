package whatif

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var promStart = time.Date(2026, 11, 28, 8, 0, 20, 0, time.UTC)

// ask asks a server that answers as answer says.
func ask(t *testing.T, length time.Duration, answer http.HandlerFunc) (*Traffic, error) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	require.NoError(t, err)
	at.User, at.Path = url.UserPassword("me", "pass-word-1"), "/prometheus"
	q := Query{Server: at, Text: "sum by (tag) (rate(x[1m]))", Label: "tag", Start: promStart, End: promStart.Add(length)}
	return q.Traffic(t.Context())
}

func TestTrafficOfPrometheus(t *testing.T) {
	var asked []string
	got, err := ask(t, 3*time.Minute, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		asked = append(asked, r.Method, r.URL.Path, user, password, r.FormValue("query"), r.FormValue("step"))
		begin := promStart.Truncate(time.Minute).Unix()
		assert.Equal(t, fmt.Sprint(begin+60), r.FormValue("start"))
		assert.Equal(t, fmt.Sprint(begin+180), r.FormValue("end"))
		_, _ = fmt.Fprintf(w, `{"status": "success", "data": {"resultType": "matrix", "result": [
			{"metric": {"tag": "b"}, "values": [[%d, "0"], [%d.0, "12.5"], [%d, "NaN"]]},
			{"metric": {}, "values": [[%[1]d, "3"]]}, {"metric": {"tag": "idle"}, "values": [[%[1]d, "0"]]}]}}`, begin+60, begin+120, begin+180)
	})
	require.NoError(t, err)
	require.Equal(t, []string{"POST", "/prometheus/api/v1/query_range", "me", "pass-word-1", "sum by (tag) (rate(x[1m]))", "60"}, asked)
	require.Equal(t, &Traffic{Start: promStart.Truncate(time.Minute), Minutes: 3, Tags: []TagTraffic{
		{Name: "", Minutes: []Minute{{Index: 0, Rate: 3, Cost: 1}}}, {Name: "b", Minutes: []Minute{{Index: 1, Rate: 12.5, Cost: 1}}},
	}}, got)
}

// A server gives 11,000 points of a series at most, so a long recording takes several questions.
func TestALongRecordingIsAskedForInParts(t *testing.T) {
	questions := 0
	got, err := ask(t, 20*24*time.Hour, func(w http.ResponseWriter, r *http.Request) {
		questions++
		from, err := strconv.ParseInt(r.FormValue("start"), 10, 64)
		assert.NoError(t, err)
		to, err := strconv.ParseInt(r.FormValue("end"), 10, 64)
		assert.NoError(t, err)
		assert.LessOrEqual(t, (to-from)/60+1, int64(11_000))
		var values []string
		for at := from; at <= to; at += 60 {
			values = append(values, fmt.Sprintf(`[%d, "1"]`, at))
		}
		_, _ = fmt.Fprintf(w, `{"data": {"resultType": "matrix", "result": [{"metric": {"tag": "a"}, "values": [%s]}]}}`, strings.Join(values, ","))
	})
	require.NoError(t, err)
	require.Equal(t, 3, questions)
	require.Len(t, got.Tags[0].Minutes, 20*24*60)
	for i, m := range got.Tags[0].Minutes {
		require.Equal(t, i, m.Index)
	}
}

func TestAnswersThatAreNoTraffic(t *testing.T) {
	matrix := func(result string) string { return `{"data": {"resultType": "matrix", "result": [` + result + `]}}` }
	at := promStart.Truncate(time.Minute).Unix() + 60
	for says, c := range map[string]struct {
		status int
		body   string
	}{
		"status 400: parse error":               {400, `{"status": "error", "error": "parse error"}`},
		"status 502, allowed: 200":              {502, `<html>`},
		"is no matrix":                          {200, `{"data": {"resultType": "vector", "result": []}}`},
		"the answer is no matrix":               {200, `no JSON`},
		"has no call from 2026-11-28T08:00:00Z": {200, matrix("")},
		`several series with tag "a"`:           {200, matrix(`{"metric": {"tag": "a"}, "values": []}, {"metric": {"tag": "a"}, "values": []}`)},
		`tag is "\x00"`:                         {200, matrix(`{"metric": {"tag": "\u0000"}, "values": []}`)},
		`the value "-1" is no rate`:             {200, matrix(fmt.Sprintf(`{"metric": {}, "values": [[%d, "-1"]]}`, at))},
		`the value "+Inf" is no rate`:           {200, matrix(fmt.Sprintf(`{"metric": {}, "values": [[%d, "+Inf"]]}`, at))},
		`the value 1 2 is no point`:             {200, matrix(`{"metric": {}, "values": [[1, 2]]}`)},
		"the value at 5 s is of no minute":      {200, matrix(`{"metric": {}, "values": [[5, "2"]]}`)},
		"is no point, allowed: seconds":         {200, matrix(`{"metric": {}, "values": [[]]}`)},
	} {
		_, err := ask(t, 3*time.Minute, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		})
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "pass-word-1")
	}
	_, err := ask(t, time.Second, nil)
	require.ErrorContains(t, err, "allowed: a minute to 31 days")
	gone := Query{Server: &url.URL{Scheme: "http", Host: "127.0.0.1:1", User: url.UserPassword("me", "pass-word-1")}, Start: promStart}
	gone.End = promStart.Add(time.Hour)
	_, err = gone.Traffic(t.Context())
	require.ErrorContains(t, err, "traffic: http://me:xxxxx@127.0.0.1:1: ")
	require.NotContains(t, err.Error(), "pass-word-1")
}
