package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// What an answer doesn't surely say is stored is answered as refused. Messages are {"id":"a"}, {"id":"b"} and {"id":"c"}; s: stored, -: not.
func TestResultsThatAreUnknown(t *testing.T) {
	const in = `{"id":"a","code":0},{"id":"c","success":1}`
	for _, c := range []struct {
		status     int
		body, want string
	}{
		// Out of order.
		{207, `[{"index":2,"status":200},{"index":0,"status":500},{"index":1,"status":200}]`, "-ss"},
		{207, `[{"index":"2","status":200},{"index":"0","status":500},{"index":"1","status":200}]`, "-ss"},
		{207, `[{"create":{"index":2,"status":200}},{"create":{"index":0,"status":500}},{"create":{"index":1,"status":200}}]`, "-ss"},
		{207, `[{"index":3,"status":200},{"index":1,"status":500},{"index":2,"status":200}]`, "---"}, // from 1
		{207, `[{"index":1,"status":200},{"index":1,"status":200},{"index":1,"status":200}]`, "-s-"},
		{207, `[{"Id":"c","status":200},{"Id":"a","status":500},{"Id":"b","status":200}]`, "-ss"},
		{207, `[{"request":{"id":"c"},"status":200},{"request":{"id":"a"},"status":500},{"request":{"id":"b"},"status":200}]`, "-ss"},
		{207, `[{"id":"server-1","status":200},{"id":"server-2","status":500},{"id":"server-3","status":200}]`, "s-s"},
		{207, `[{"id":"server-1","status":500},{"id":"a","status":200},{"id":"c","status":200}]`, "s-s"},
		// Named, but in a way that isn't known.
		{200, `{"a":"ok","b":"rejected","c":"stored"}`, "s-s"},
		{200, `{"a":200,"b":429,"c":201}`, "s-s"},
		{200, `{"a":true,"b":false,"c":true}`, "s-s"},
		{200, `{"data":{"a":"ok","b":"lost","c":"ok"}}`, "s-s"},
		{200, `{"results":[{"id":"a","ack":true},{"id":"b","ack":false},{"id":"c","ack":true}]}`, "s-s"},
		{200, `{"results":[{"id":"a","written":true},{"id":"b","written":false},{"id":"c","written":true}]}`, "s-s"},
		{200, `{"results":[{"id":"a","acked":1},{"id":"b","acked":0},{"id":"c","acked":1}]}`, "s-s"},
		{200, `{"results":[{"id":"a","kept":true},{"id":"b","kept":false}]}`, "---"},
		{200, `{"results":[{"key":"b","kept":false}]}`, "---"},
		{200, `{"retryable":["b"]}`, "---"},
		{200, `{"pending":["b"]}`, "---"},
		{200, `{"ignored":["b"],"deadLettered":["a"]}`, "---"},
		{200, `{"stored":["a","c"],"bounced":["b"]}`, "s-s"},
		{200, `{"results":{"0":"ok","1":"rejected","2":"ok"}}`, "---"},
		{200, `{"statuses":{"x1":"ok","x2":"failed","x3":"ok"}}`, "---"},
		{200, `{"result":{"message":"no errors","x":"done"}}`, "sss"},
		{207, `{"success":[true,false,true]}`, "s-s"},
		{207, `{"stored":["ok","rejected","ok"]}`, "s-s"},
		{207, `{"saved":[201,500,201]}`, "s-s"},
		{207, `{"accepted":[1,0,1]}`, "s-s"},
		{207, `{"accepted":[0,1,2]}`, "sss"},
		{207, `{"created":["n1","n2","n3"]}`, "sss"},
		{200, `{"inserted":2}`, "---"},
		{400, `{"message":"Bad Request"}`, "---"},
		{429, `{"message":"Too Many Requests"}`, "---"},
		{400, `{"errors":[{"index":1,"message":"x"}]}`, "s-s"},
		{206, `{"itemsReceived":3,"itemsAccepted":2,"errors":[{"index":1,"statusCode":429}]}`, "s-s"},
		{206, `{"took":3}`, "---"},
		{200, ``, "sss"},
		{207, ``, "---"},
		{200, `{"errcode":45009,"errmsg":"api freq out of limit"}`, "---"},
		{200, `{"errcode":0,"errmsg":"ok"}`, "sss"},
		{200, `{"results":[{"errcode":0},{"errcode":40003,"errmsg":"x"},{"errcode":0}]}`, "s-s"},
		{200, `{"statuses":["QUOTA","ok","ok"]}`, "-ss"},
		{200, `{"codes":[0,7,200]}`, "s-s"},
		{200, `{"matchedCount":2,"modifiedCount":2,"upsertedCount":0}`, "---"},
		{200, `{"inserted":2,"affectedRows":2}`, "---"},
		{200, `{"inserted":2,"summary":{"inserted":2}}`, "---"},
		{200, `{"error_code":200,"offset":1}{"error_code":503,"offset":1}{"error_code":200}`, "s-s"},
		{200, `{"successCount":3,"failCount":0,"failedUpdates":{"invalidEmails":[],"notFoundEmails":[]}}`, "sss"},
		{200, `{"errors":{"count":0,"items":[]}}`, "sss"},
		{200, `{"errors":[null,null,null]}`, "sss"},
		{200, `{"failed":[0]}`, "---"},
		{200, `{"failed":250}`, "---"},
		{207, `{"errors":[{"batch_index":1,"reason":"invalid"}]}`, "s-s"},
		{201, `{"issues":[{"id":"10000"}],"errors":[{"status":400,"failedElementNumber":1}]}`, "s-s"},
		{200, `{"inserted":3}`, "sss"},
		{200, `{"inserted":1,"updated":2}`, "sss"},
		{200, `{"inserted":1,"updatedCount":1}`, "---"},
		{200, `{"created":1600000000}`, "sss"}, // a time
		{200, `{"successCount":2}`, "---"},
		{200, `{"data":{"accepted":1}}`, "---"},
		{200, `{"data":{"accepted":3}}`, "sss"},
		{200, `{"summary":{"savedRecords":2}}`, "---"},
		{200, `{"stored":["a","b"],"expired":["b"]}`, "ss-"},
		{200, `{"meta":{"missing":{"b":{}}}}`, "---"},
		{200, `{"batch":{"x":{"y":{"z":{"late":["b"]}}}}}`, "---"},
		{200, `{"processed":[{"id":"a","reason":"quota"},{"id":"b"},{"id":"c"}]}`, "-ss"},
		{207, `{"processed":[{"id":"a","reason":"quota"},{"id":"b"},{"id":"c"}]}`, "-ss"},
		{200, `{"took":3,"host":"x"}`, "sss"},
		{200, `{"Successful":[{"Id":"a","MessageId":"9","MD5OfMessageBody":"x"},{"Id":"c"}],"Failed":[{"Id":"b","Code":"x"}]}`, "s-s"}, // SQS
		// Echoes say nothing.
		{200, `[{"id":"a"},{"n":1,"id":"b"},{"id":"c","n":{"x":2},"at":"now"}]`, "sss"},
		{200, `{"data":[{"id":"a"},{"n":1,"id":"b","at":"now"}]}`, "sss"},
		{207, `{"data":[{"id":"a"},{"n":1,"id":"b","at":"now"}]}`, "---"},
		{200, `[{"id":"a"},{"n":2,"id":"b"},{"id":"c","n":{"x":2}}]`, "---"},
		{200, `[{"id":"a"},{"n":1,"id":"b","reason":"quota exceeded"},{"id":"c","n":{"x":2}}]`, "---"},
		{200, `[{"id":"a"},{"n":1,"id":"b","message":"Created"},{"id":"c","n":{"x":2}}]`, "sss"},
		{200, `{"insertedCount":0,"matchedCount":3,"modifiedCount":1}`, "sss"},
		{200, `[{"id":"a","kept":false},{"n":1,"id":"b"}]`, "---"},
		{200, `{"failed":[{"id":"b"}],"took":3}`, "s-s"},
		// Unknown words and numbers.
		{207, `[{"id":"b","status":"rate_limited"},` + in + `]`, "s-s"},
		{207, `[{"id":"b","status":"aborted"},` + in + `]`, "s-s"},
		{207, `[{"id":"b","result":"not_found"},` + in + `]`, "s-s"},
		{207, `[{"id":"b","result":"Skipped"},` + in + `]`, "s-s"},
		{207, `[{"id":"b","status":"400 Bad Request"},` + in + `]`, "s-s"},
		{207, `[{"id":"b","status":302},` + in + `]`, "s-s"},
		{207, `[{"id":"b","status":0},` + in + `]`, "s-s"},
		{207, `[{"id":"b","code":1002,"msg":"quota"},` + in + `]`, "s-s"},
		{207, `[{"id":"b","code":"1002"},` + in + `]`, "s-s"},
		{207, `[{"id":"b","code":-1},` + in + `]`, "s-s"},
		{207, `[{"id":"b","success":"false"},` + in + `]`, "s-s"},
		{207, `[{"id":"b","ok":0},` + in + `]`, "s-s"},
		{207, `[{"id":"b","response":{"status":"503"}},` + in + `]`, "s-s"},
		{207, `[{"id":"b"},` + in + `]`, "s-s"},
		{207, `[{"id":"a"},{"id":"b"},{"id":"c"}]`, "---"},
		{207, `{"results":["ok","rate_limited","ok"]}`, "s-s"},
		{207, `[{"id":"b","code":"OK"},{"id":"a","status":"Created"},{"id":"c","result":"noop"}]`, "sss"},
		{207, `[{"id":"b","status":"201 Created"},{"id":"a","success":"true"},{"id":"c","ok":true}]`, "sss"},
		{207, `[{"id":"b","code":""},{"id":"a","status":"already_exists"},{"id":"c","status":"QUEUED"}]`, "-ss"},
		// Failures of unknown messages.
		{207, `{"failed":[{"id":"a","error":"x"},{"id":"server-7","error":"y"}]}`, "---"},
		{200, `{"failed":[{"id":"a","error":"x"},{"id":"server-7","error":"y"}]}`, "---"},
		{200, `{"stored":[{"id":"c"}],"failed":[{"id":"a"},{"id":"server-7"}]}`, "--s"},
		{200, `{"failed":[{"id":"server-7"},{"id":"a"},{"id":"a"}]}`, "---"},
		{207, `{"results":[{"id":"a","status":503},{"id":"b","status":503}]}`, "---"},
		{200, `{"results":[{"id":"a","status":503},{"id":"b","status":503}]}`, "---"},
		{200, `{"results":[{"id":"a","status":201},{"id":"b","status":201}]}`, "ss-"},
		{200, `{"failed":["a"]}`, "-ss"},
		{200, `{"failed":["server-7"]}`, "---"},
		{200, `{"failed":[1]}`, "---"},
		{207, `{"invalid":[],"failed":["a"]}`, "-ss"},
		{200, `{"stored":["a","c"],"failed":["b"]}`, "s-s"},
		{207, `{"skipped":0}`, "---"},
		{200, `{"UnprocessedItems":{"table":[{"PutRequest":{"Item":{"id":{"S":"b"}}}}]}}`, "---"},
		{200, `{"UnprocessedItems":{}}`, "sss"},
		{200, `{"errors":true,"items":[{"index":{"status":201}},{"index":{"status":503}}]}`, "---"},
		{200, `{"errors":true}`, "---"},
		{200, `{"FailedRecordCount":2,"failed":[{"id":"b"}]}`, "---"},
		{200, `{"FailedRecordCount":1,"failed":[{"id":"b"}]}`, "s-s"},
		{200, `{"accepted":2}`, "---"},
		{200, `{"accepted":3}`, "sss"},
		{200, `{"success":false,"message":"quota"}`, "---"},
		{200, `{"status":"rate_limited"}`, "---"},
		{200, `{"results":{"a":{"status":200},"b":{"status":500},"c":{"status":200}}}`, "s-s"},
		{200, `{"errors":{"b":{"reason":"x"}}}`, "s-s"},
		{200, `{"errors":{"server-7":"x"},"failed":["a"]}`, "---"},
		{200, `{"batches":[{"failed":[{"id":"server-7"}]}]}`, "---"},
		{200, `{"a1":{"a2":{"a3":{"a4":{"a5":{"failed":["server-7"]}}}}}}`, "---"},
		{200, `false`, "---"},
	} {
		records, err := readRecords(result{status: c.status, body: []byte(c.body), complete: true},
			map[string]int{"m-1": 0, "m-2": 1, "m-3": 2, "id=a": 0, "id=b": 1, "id=c": 2},
			[][]byte{[]byte(`{"id":"a"}`), []byte(`{"id":"b","n":1}`), []byte(`{"id":"c","n":{"x": 2}}`)})
		got := ""
		for i := range 3 {
			if err == nil && records[i].reported && !records[i].failed {
				got += "s"
			} else {
				got += "-"
			}
		}
		require.Equal(t, c.want, got, "%d %s", c.status, c.body)
	}
}

// What a result repeats of its record is no verdict: a status of the record's own, or an error in its text.
func TestFieldsOfTheRecordSayNothing(t *testing.T) {
	sent := [][]byte{[]byte(`{"id":"a","status":"done"}`), []byte(`{"id":"b","status":"done"}`), []byte(`{"id":"c","error":"x"}`)}
	for body, want := range map[string]string{
		`[{"id":"a","status":"done","code":0},{"id":"b","status":"done","reason":"quota exceeded"},{"id":"c","error":"x","code":0}]`: "s-s",
		`[{"item":{"id":"a","status":"done"},"state":"stored"},{"item":{"id":"b","status":"done"},"verdict":"over quota"}]`:          "s--",
	} {
		records, err := readRecords(result{status: 207, body: []byte(body), complete: true}, map[string]int{"id=a": 0, "id=b": 1, "id=c": 2}, sent)
		require.NoError(t, err)
		got := ""
		for i := range records {
			got += map[bool]string{true: "s", false: "-"}[records[i].reported && !records[i].failed]
		}
		require.Equal(t, want, got, body)
	}
}

// An ID that two messages have is none, and so is a field that is the same in all.
func TestResultsWithIDsOfSeveralMessages(t *testing.T) {
	for body, want := range map[string][]dataplane.SinkStatus{
		`{"failed":[{"id":"a"}]}`: all(3, dataplane.SinkFailure),
		`[{"t_id":1,"status":200},{"t_id":1,"status":500},{"t_id":1,"status":200}]`: {dataplane.SinkSuccess, dataplane.SinkFailure, dataplane.SinkSuccess},
	} {
		service := startService(t, func(w http.ResponseWriter, _ seen, _ int) {
			w.WriteHeader(http.StatusMultiStatus)
			_, _ = w.Write([]byte(body))
		})
		r := start(t, env{"URL": service.URL, "FORMAT": "json-array"})
		require.Equal(t, want, statuses(r.do(messages(`{"id":"a","t_id":1}`, `{"id":"a","t_id":1}`, `{"id":"b","t_id":1}`)...)), body)
	}
}

// A failure without a status is none of 400, whatever 400 means.
func TestResultsWithoutAStatus(t *testing.T) {
	service := startService(t, func(w http.ResponseWriter, _ seen, _ int) {
		w.WriteHeader(http.StatusMultiStatus)
		_, _ = w.Write([]byte(`[{"success":false},{"status":400},{"status":200,"error":"x"}]`))
	})
	r := start(t, env{"URL": service.URL, "FORMAT": "json-array", "STATUSES": "400=ok"})
	require.Equal(t, []dataplane.SinkStatus{dataplane.SinkFailure, dataplane.SinkSuccess, dataplane.SinkFailure}, statuses(r.do(numbered(3)...)))
}

// A failure whose message is unknown makes no message stored that wasn't, and a failure that is named is none that is stored.
func FuzzResults(f *testing.F) {
	for _, body := range []string{
		`{"items":[{"index":{"status":201}},{"id":"b","error":"x"}]}`, `{"failed":["a"]}`, `[{"index":1,"status":200},{"index":0,"status":500}]`,
		`{"results":{"a":{"status":200}},"errors":false}`, `{"stored":[{"id":"a"}]}`, `{"kind":"x"}`, `[]`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		read := func(status int, body []byte) (stored [2]bool) {
			records, err := readRecords(result{status: status, body: body, complete: true}, map[string]int{"a": 0, "id=b": 1}, make([][]byte, 2))
			require.Equal(t, err == nil, len(records) == 2)
			for i, one := range records {
				stored[i] = one.reported && !one.failed
			}
			return stored
		}
		for _, status := range []int{200, 207} {
			read(status, body)
			if !json.Valid(body) {
				continue
			}
			before := read(status, fmt.Appendf(nil, `{"answer":%s}`, body)) // as deep as the others
			after := read(status, fmt.Appendf(nil, `{"answer":%s,"failed":[{"id":"server-7"}]}`, body))
			require.True(t, before[0] || !after[0], "a")
			require.True(t, before[1] || !after[1], "b")
			named := read(status, fmt.Appendf(nil, `{"answer":%s,"failed":[{"id":"b"},{"id":"server-7"}]}`, body))
			require.False(t, named[1])
			require.True(t, before[0] || !named[0], "a")
		}
	})
}
