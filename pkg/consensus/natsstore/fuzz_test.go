package natsstore

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// The key of any pool is one that every bucket takes, and no other pool's.
func FuzzKeyOf(f *testing.F) {
	f.Add("a.b", "a=2Eb")
	f.Add("a", "A")
	f.Add(strings.Repeat(".", 70), strings.Repeat("=2E", 70))
	f.Add("_kv", "=5Fkv")
	f.Add("ns/pipe-1/map_2", "==d40ca1173d0af4f915050bfb948d5d27549ec4133625f2a2700d1fe11ff325e5")
	valid := regexp.MustCompile(`^[-/_=a-zA-Z0-9]{1,200}$`)
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == "" || b == "" {
			return
		}
		for _, key := range []string{keyOf(a), keyOf(b)} {
			require.Regexp(t, valid, key)
			require.False(t, strings.HasPrefix(key, "_kv"), "the bucket's own: %s", key)
		}
		require.Equal(t, a == b, keyOf(a) == keyOf(b))
	})
}

// Headers of any form are an error, or tell whether the value is deleted.
func FuzzIsMarker(f *testing.F) {
	for _, seed := range []string{
		"NATS/1.0\r\nKV-Operation: DEL\r\n\r\n", "NATS/1.0\r\nKV-Operation: PUT\r\n\r\n", "NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\n\r\n",
		"NATS/1.0 503\r\n\r\n", "NATS/1.0\r\n\r\n", "NATS/1.0", "", "x",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, header []byte) {
		deleted, err := isMarker(header)
		if err != nil || !deleted {
			require.False(t, deleted)
			return
		}
		text := string(header)
		require.True(t, strings.Contains(text, headerOperation) || strings.Contains(text, headerMarker), "%q", text)
	})
}

// What a server says of the stream, and of an entry, is an error, or can be used.
func FuzzReplies(f *testing.F) {
	for _, seed := range []string{
		`{"type":"io.nats.jetstream.api.v1.stream_info_response","config":{"name":"KV_b","subjects":["$KV.b.>"],"retention":"limits",` +
			`"max_msgs_per_subject":1,"storage":"file","num_replicas":3,"discard":"old","mirror":null,"sources":[]},` +
			`"created":"2026-11-21T10:00:00.123456789Z","state":{"last_seq":7},` +
			`"cluster":{"name":"c","leader":"n1","replicas":[{"name":"n2"},{}]},"ts":"2026-11-21T10:00:01Z"}`,
		`{"config":{"subjects":[],"retention":"workqueue","max_age":1,"sealed":true,"no_ack":true,"persist_mode":"async",` +
			`"allow_msg_counter":true},"cluster":{}}`,
		`{"message":{"subject":"$KV.b.p","seq":7,"hdrs":"TkFUUy8xLjANCg0K","data":"TlQB","time":"2026-11-21T10:00:00Z"}}`,
		`{"message":{"seq":18446744073709551615,"time":"9999-12-31T23:59:59Z"}}`, `{"message":{"seq":1,"time":"0001-01-01T00:00:00Z","data":""}}`,
		`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`, `{}`, `[]`, `null`, `x`,
	} {
		f.Add([]byte(seed))
	}
	store, err := New(&nats.Conn{}, WithBucket("b"))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		var info streamInfo
		if json.Unmarshal(data, &info) == nil {
			if id, err := info.identity(); err == nil {
				created, _, _ := strings.Cut(id, " ")
				at, err := time.Parse(time.RFC3339Nano, created)
				require.NoError(t, err, "an identity begins with a time")
				require.True(t, at.Equal(info.Created))
			}
			info.checksTwice()
			if store.check(&info.Config) == nil {
				require.Contains(t, info.Config.Subjects, "$KV.b.>")
				require.False(t, info.Config.Sealed || info.Config.NoAck)
				require.True(t, info.Config.MaxAge == 0 || info.Config.MaxAge >= minRecordAge)
			}
		}
		var reply getReply
		if json.Unmarshal(data, &reply) != nil || reply.Message == nil {
			return
		}
		e := entry{value: append([]byte{}, reply.Message.Data...), created: reply.Message.Time}
		at := driver.At{Now: e.micros(), Identity: "s", Deferred: true}
		require.GreaterOrEqual(t, at.Now, int64(0))
		// A record is read, moved on and written at any time that a server can name.
		record, err := driver.ParseRecord(e.value)
		if err != nil {
			record = &driver.Record{}
		}
		req := driver.Request{
			Pool: "p", ID: "a", Incarnation: "1", Seq: 1, Nonce: 1, Lease: driver.MinLease, Report: driver.Report{Wanted: driver.Whole},
		}
		if record.Clock < 1<<59 && record.Revision < 1<<62 && record.FrozenUntil < 1<<59 {
			record.Sync(&req, at)
			_, err = record.AppendBinary(nil)
			require.NoError(t, err)
		}
	})
}
