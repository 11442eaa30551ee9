package main

import (
	"maps"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// byValue answers with the status that the message is.
func byValue(w http.ResponseWriter, r seen, _ int) {
	status, _ := strconv.Atoi(r.Body)
	w.WriteHeader(status)
}

func TestWhatAStatusMeansForAMessage(t *testing.T) {
	const ok, failure, nack, fallback = dataplane.SinkSuccess, dataplane.SinkFailure, dataplane.SinkNack, dataplane.SinkFallback
	type row struct {
		status int
		want   dataplane.SinkStatus
	}
	for name, c := range map[string]struct {
		vars env
		rows []row
	}{
		"by default": {nil, []row{
			{200, ok},
			{201, ok},
			{202, ok},
			{204, ok},
			{301, failure},
			{304, failure},
			{400, failure},
			{401, failure},
			{404, failure},
			{408, failure},
			{409, failure},
			{413, failure},
			{422, failure},
			{425, failure},
			{429, failure},
			{500, failure},
			{501, failure},
			{502, failure},
			{503, failure},
			{504, failure},
			{529, failure},
		}},
		"unavailable is a nack, invalid goes elsewhere": {env{"ON_UNAVAILABLE": "nack", "STATUSES": "4xx=fallback 408-409=retry 410=drop 429=wait"}, []row{
			{200, ok}, {400, fallback}, {408, nack}, {409, nack}, {410, ok}, {429, nack}, {499, fallback}, {500, nack}, {501, failure}, {503, nack},
		}},
		"unavailable is a drop": {env{"ON_UNAVAILABLE": "drop", "STATUSES": "500=ok,201=fail"}, []row{{503, ok}, {500, ok}, {201, failure}, {404, failure}}},
		"the answer goes on":    {env{"ON_OK": "on-success"}, []row{{200, dataplane.SinkOnSuccess}, {404, failure}}},
	} {
		t.Run(name, func(t *testing.T) {
			service := startService(t, byValue)
			vars := env{"URL": service.URL, "DESTINATION": "{{.Value}}"} // so that no pause of one meets another
			maps.Copy(vars, c.vars)
			r := start(t, vars)
			var values []string
			var want []dataplane.SinkStatus
			for _, row := range c.rows {
				values, want = append(values, strconv.Itoa(row.status)), append(want, row.want)
			}
			results := r.do(messages(values...)...)
			require.Equal(t, want, statuses(results))
			require.Len(t, service.Requests(), len(values))
			for i, result := range results {
				switch result.Status {
				case failure:
					require.Equal(t, "status "+values[i], result.Error)
				case nack:
					require.Equal(t, "status "+values[i], result.NackOptions.Reason)
					require.GreaterOrEqual(t, result.NackOptions.Delay, 100*time.Millisecond)
					require.LessOrEqual(t, result.NackOptions.Delay, 125*time.Millisecond)
				default:
				}
			}
		})
	}
}

func TestANackWaitsAsLongAsTheServiceSays(t *testing.T) {
	service := startService(t, func(w http.ResponseWriter, _ seen, _ int) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	r := start(t, env{"URL": service.URL, "ON_UNAVAILABLE": "nack", "MAX_ATTEMPTS": "5", "CONCURRENCY": "1"})
	for _, result := range r.do(numbered(20)...) {
		require.Equal(t, dataplane.SinkNack, result.Status)
		require.GreaterOrEqual(t, result.NackOptions.Delay, 119*time.Second)
		require.LessOrEqual(t, result.NackOptions.Delay, 150*time.Second)
	}
	require.Len(t, service.Requests(), 1, "what was told to one holds for all to the same destination, and 120 s are above maxWait")
}

func TestAMessageThatCannotBeSent(t *testing.T) {
	for onInvalid, want := range map[string]dataplane.SinkStatus{
		"fail": dataplane.SinkFailure, "nack": dataplane.SinkNack, "fallback": dataplane.SinkFallback, "drop": dataplane.SinkSuccess,
	} {
		t.Run(onInvalid, func(t *testing.T) {
			service := startService(t, nil)
			r := start(t, env{"URL": service.URL, "FORMAT": "json-array", "ON_INVALID": onInvalid})
			results := r.do(messages(`{"a":1}`, "no JSON "+canary, "2")...)
			require.Equal(t, []dataplane.SinkStatus{dataplane.SinkSuccess, want, dataplane.SinkSuccess}, statuses(results))
			require.Equal(t, []string{`[{"a":1},2]`}, service.Bodies())
		})
	}
}

// A throttled batch waits and is sent again, whatever the status: AWS has 400 for it. Nothing is halved.
func TestRefusalsThatTheStatusDoesNotTell(t *testing.T) {
	for name, refuse := range map[string]func(w http.ResponseWriter){
		"a code, JSON": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"com.amazonaws.kinesis#ProvisionedThroughputExceededException","message":"x"}`))
		},
		"a header": func(w http.ResponseWriter) {
			w.Header().Set("X-Amzn-Errortype", "ThrottlingException:http://internal.amazon.com/")
			w.WriteHeader(http.StatusBadRequest)
		},
		"a code, XML": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>`))
		},
		"403 with a time": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusForbidden)
		},
	} {
		t.Run(name, func(t *testing.T) {
			service := startService(t, func(w http.ResponseWriter, _ seen, n int) {
				if n <= 2 {
					refuse(w)
				}
			})
			r := start(t, env{
				"URL": service.URL, "FORMAT": "json-array", "MAX_MESSAGES": "64", "MAX_ATTEMPTS": "4",
				"SIGNATURE": "aws-sigv4", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_KEY": canary, "AWS_REGION": "eu-central-1", "AWS_SERVICE": "kinesis",
			})
			require.Equal(t, all(64, dataplane.SinkSuccess), statuses(r.do(numbered(64)...)))
			require.Len(t, service.Requests(), 3)
		})
	}
}
