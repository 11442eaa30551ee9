package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// An answer says for each message whether it's stored, in the forms of many services. Messages are {"id":"a"}, {"id":"b"} and {"id":"c"}.
func TestResultsOfEachMessage(t *testing.T) {
	const good, bad = dataplane.SinkSuccess, dataplane.SinkFailure
	second := []dataplane.SinkStatus{good, bad, good}
	for name, c := range map[string]struct {
		status int
		body   string
		want   []dataplane.SinkStatus
		errors string
	}{
		"by ID": {
			207, `{"results":[{"id":"c","status":422},{"id":"a","status":201},{"id":"b","status":201}]}`,
			[]dataplane.SinkStatus{good, good, bad},
			"status 422",
		},
		"in order": {207, `[{"status":201},{"status":"HTTP/1.1 400 Bad Request"},{"status":201}]`, second, "status 400"},
		"lines":    {207, "{\"status\":201}\n{\"status\":201}\n{\"status\":500}\n", []dataplane.SinkStatus{good, good, bad}, "status 500"},
		"Elasticsearch": {200, `{"took":30,"errors":true,"items":[{"index":{"_id":"1","status":201}},{"create":{"status":429,"error":{"type":"x"}}},` +
			`{"index":{"_id":"3","status":201}}]}`, second, "status 429"},
		"Elasticsearch, all": {
			200, `{"errors":false,"items":[{"index":{"status":201}},{"index":{"status":201}},{"index":{"status":200}}]}`,
			[]dataplane.SinkStatus{good, good, good},
			"",
		},
		"Kinesis": {200, `{"FailedRecordCount":1,"Records":[{"SequenceNumber":"1"},{"SequenceNumber":"2"},` +
			`{"ErrorCode":"ProvisionedThroughputExceededException","ErrorMessage":"x"}]}`, []dataplane.SinkStatus{good, good, bad}, "status 200"},
		"Kinesis, all": {
			200, `{"FailedRecordCount":0,"Records":[{"ErrorCode":null},{"ErrorCode":null},{"ErrorCode":null}]}`,
			[]dataplane.SinkStatus{good, good, good},
			"",
		},
		"SQS": {
			200, `{"Successful":[{"id":"a"},{"id":"c"}],"Failed":[{"id":"b","Code":"InvalidParameterValue","SenderFault":true}]}`,
			second, "status 200",
		},
		"BigQuery":               {200, `{"insertErrors":[{"index":1,"errors":[{"reason":"invalid"}]}]}`, second, "status 200"},
		"BigQuery, all":          {200, `{"kind":"x"}`, []dataplane.SinkStatus{good, good, good}, ""},
		"a list of failures":     {207, `{"failed":[{"id":"b","message":"x"}]}`, second, "status 207"},
		"a code":                 {207, `[{"id":"a","code":"OK"},{"id":"b","code":"INVALID"},{"id":"c","code":"OK"}]`, second, "status 207"},
		"success or not":         {207, `[{"id":"a","success":true},{"id":"b","success":false},{"id":"c","success":true}]`, second, "status 207"},
		"told twice":             {207, `{"done":[{"id":"a"},{"id":"b"},{"id":"c"}],"errors":[{"id":"b"}]}`, second, "status 207"},
		"one is left out of 207": {207, `[{"id":"a","status":201},{"id":"b","status":201}]`, []dataplane.SinkStatus{good, good, bad}, "does not say"},
		"nothing is told":        {207, `{"message":"multi-status"}`, []dataplane.SinkStatus{bad, bad, bad}, "does not say"},
		"nothing":                {207, ``, []dataplane.SinkStatus{bad, bad, bad}, "does not say"},
		"no JSON":                {207, `<multistatus/>`, []dataplane.SinkStatus{bad, bad, bad}, "does not say"},
		"cut off":                {207, `[{"id":"a","status":201},`, []dataplane.SinkStatus{bad, bad, bad}, "does not say"},
		"too long":               {207, `[{"id":"a","status":201}]` + strings.Repeat(" ", 70_000), []dataplane.SinkStatus{bad, bad, bad}, "maxResponse"},
	} {
		t.Run(name, func(t *testing.T) {
			service := startService(t, func(w http.ResponseWriter, _ seen, _ int) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			})
			r := start(t, env{"URL": service.URL, "FORMAT": "json-array", "MAX_ATTEMPTS": "4", "STATUSES": "200=each"})
			results := r.do(messages(`{"id":"a"}`, `{"id":"b"}`, `{"id":"c"}`)...)
			require.Equal(t, c.want, statuses(results))
			for i, status := range c.want {
				if status == bad {
					require.Contains(t, results[i].Error, c.errors)
				}
			}
			require.Len(t, service.Requests(), 1, "what is stored isn't sent again")
		})
	}
}

// Each message goes where its own status says.
func TestResultsHaveTheirClasses(t *testing.T) {
	service := startService(t, func(w http.ResponseWriter, _ seen, _ int) {
		w.WriteHeader(http.StatusMultiStatus)
		_, _ = w.Write([]byte(`[{"status":201,"at":7},{"status":404},{"status":410},{"status":503},{"error":{"type":"ThrottlingException"}},{"error":"no"}]`))
	})
	r := start(t, env{"URL": service.URL, "FORMAT": "json-array", "STATUSES": "404=drop 410=fallback", "ON_UNAVAILABLE": "nack", "ON_OK": "on-success"})
	results := r.do(numbered(6)...)
	require.Equal(t, []dataplane.SinkStatus{
		dataplane.SinkOnSuccess, dataplane.SinkSuccess, dataplane.SinkFallback, dataplane.SinkNack, dataplane.SinkNack, dataplane.SinkFailure,
	}, statuses(results))
}

// A single message has a result, too.
func TestResultOfOneMessage(t *testing.T) {
	for body, want := range map[string]dataplane.SinkStatus{
		`{"status":201}`: dataplane.SinkSuccess, `{"status":422}`: dataplane.SinkFailure,
		`[{"error":"x"}]`: dataplane.SinkFailure, `[{"status":200}]`: dataplane.SinkSuccess,
	} {
		service := startService(t, func(w http.ResponseWriter, _ seen, _ int) {
			w.WriteHeader(http.StatusMultiStatus)
			_, _ = w.Write([]byte(body))
		})
		require.Equal(t, []dataplane.SinkStatus{want}, statuses(start(t, env{"URL": service.URL}).do(messages("x")...)), body)
	}
}

func FuzzResults(f *testing.F) {
	f.Add([]byte(`{"items":[{"index":{"status":201}},{"id":"b","error":"x"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, status := range []int{200, 207} {
			records, err := readRecords(result{status: status, body: body, complete: true}, map[string]int{"a": 0, "id=b": 1}, 2)
			require.Equal(t, err == nil, len(records) == 2)
		}
	})
}
