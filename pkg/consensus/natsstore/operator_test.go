package natsstore

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// podName is as long a name as a pod can have in Kubernetes.
func podName(i int) string { return fmt.Sprintf("%s-%03d", strings.Repeat("p", 59), i) }

// The least sizes that are asked for are those of the records there can be.
func TestSizesOfRecords(t *testing.T) {
	size := func(n int, full bool) int {
		rec := &driver.Record{}
		for i := range n {
			req := slow(request("p", podName(i), 1))
			req.Note = strings.Repeat("n", 60)
			if full {
				req.Busy = strings.Repeat("b", wire.MaxBusyBytes)
				now := int64(1e15)
				for key := 250 * i; i < 4 && key < 250*(i+1); key++ {
					req.Draws = append(req.Draws, driver.Draw{
						Key: uint64(key+1) << 53, Version: wire.MaxVersion, Total: 1000, Per: time.Minute, Burst: 1e6, Ask: 1,
						Budgets: []driver.BudgetDraw{{Amount: wire.MaxAmount, Start: now - 1e12, End: now + 1e12, Seen: 1e9}},
					})
				}
			}
			if i == 0 && full {
				for k := range 4 { // more than any pool has of the largest
					req.Documents = append(req.Documents, driver.DocumentReport{
						Name: fmt.Sprint("d", k), Version: 1, Body: []byte(strings.Repeat("x", wire.MaxDocumentBytes)),
					})
				}
			}
			_, _ = rec.Sync(&req, driver.At{Now: int64(1e15) + int64(i)*1000, Identity: "s"})
		}
		_, roster, err := rec.Load()
		require.NoError(t, err)
		require.Len(t, roster, n)
		value, err := rec.AppendBinary(nil)
		require.NoError(t, err)
		t.Logf("%d processors, documents, tag buckets and what is busy %t: %d bytes", n, full, len(value))
		return len(value)
	}
	require.Less(t, size(100, true), poolMsgSize)
	require.Less(t, size(8, false), leastMsgSize)
	require.Less(t, size(100, false), valueBase+100*valueOfRow)
}

// made makes the bucket as an operator does.
func made(t *testing.T, s *Store, change func(c *jetstream.StreamConfig)) {
	t.Helper()
	js, err := jetstream.New(s.nc)
	require.NoError(t, err)
	c := jetstream.StreamConfig{Name: "KV_numathrottle", Subjects: []string{"$KV.numathrottle.>"}, MaxMsgsPerSubject: 1, DenyDelete: true, AllowRollup: true}
	change(&c)
	_, err = js.CreateStream(t.Context(), c)
	require.NoError(t, err)
}

// Of a bucket that an operator has made the first processor says what the others would fail for, and those who fail say which setting
// it is, on old servers and new ones.
func TestBucketsOfOperators(t *testing.T) {
	for server, start := range map[string]func(testing.TB) target{"current": current, "installed": debian} {
		for name, tt := range map[string]struct {
			change func(c *jetstream.StreamConfig)
			first  string   // the error of the first processor; empty: none
			warned []string // what the log says then
			later  []string // in the error once there are many; empty: none
		}{
			"max_msg_size of nothing": {
				change: func(c *jetstream.StreamConfig) { c.MaxMsgSize = 600 },
				first:  "its max_msg_size (max_value_size of a bucket) is 600, allowed: -1, or 131072 and more",
			},
			"max_msg_size": {
				change: func(c *jetstream.StreamConfig) { c.MaxMsgSize = 5000 },
				warned: []string{"max_msg_size 5000", "about 19 pods", "set it to -1, or to 131072 and more"},
				later:  []string{"max_msg_size of 5000", "--max-msg-size=-1", "KV_numathrottle"},
			},
			"max_bytes of nothing": {
				change: func(c *jetstream.StreamConfig) { c.MaxBytes = 1000 },
				first:  "its max_bytes is 1000, allowed: -1, or 65536 and more",
			},
			"full, discard new": {
				change: func(c *jetstream.StreamConfig) { c.MaxBytes, c.Discard = minMaxBytes, jetstream.DiscardNew },
				warned: []string{"discard new with max_bytes 65536", "set discard to old"},
				later:  []string{`is full`, `its discard is "new" with max_bytes 65536`, "--discard=old"},
			},
			"full of pools, discard new": {
				change: func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 2, jetstream.DiscardNew },
				warned: []string{"discard new with", "max_msgs 2"},
				later:  []string{"is full", "max_msgs 2"},
			},
			"full, discard old":        {change: func(c *jetstream.StreamConfig) { c.MaxBytes = minMaxBytes }},
			"a few pools, discard old": {change: func(c *jetstream.StreamConfig) { c.MaxMsgs = 100 }, warned: []string{"max_msgs 100"}},
			"as wide as need be":       {change: func(c *jetstream.StreamConfig) { c.MaxMsgSize, c.Discard = poolMsgSize, jetstream.DiscardNew }},
		} {
			t.Run(server+", "+name, func(t *testing.T) {
				var log strings.Builder
				s := open(t, start(t), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				made(t, s, tt.change)
				_, err := trySync(s, request("p", podName(0), 1))
				if tt.first != "" {
					require.ErrorContains(t, err, tt.first)
					require.ErrorContains(t, err, "nats stream edit KV_numathrottle")
					return
				}
				require.NoError(t, err)
				for _, word := range tt.warned {
					require.Contains(t, log.String(), word)
				}
				if len(tt.warned) == 0 {
					require.Empty(t, log.String())
				}
				for i := 0; i < 60 && err == nil; i++ {
					filler := request(fmt.Sprint("other", i/10), podName(i), 1)
					filler.Note = strings.Repeat("n", wire.MaxNoteBytes)
					for k := range 2 {
						filler.Documents = append(filler.Documents, driver.DocumentReport{
							Name: fmt.Sprint("d", k), Version: 1, Body: []byte(strings.Repeat("x", 4000)),
						})
					}
					if name == "max_msg_size" {
						filler.Pool, filler.Documents = "p", filler.Documents[:1] // rows alone are removed on a slow machine before they are enough
					}
					_, err = trySync(s, filler)
				}
				if len(tt.later) == 0 {
					require.NoError(t, err)
					return
				}
				for _, word := range tt.later {
					require.ErrorContains(t, err, word)
				}
				// Who is there stays.
				if name == "full, discard new" {
					_, err = trySync(s, request("p", podName(0), 2))
					require.NoError(t, err)
				}
			})
		}
	}
}

// A server's own bound is named as well.
func TestMaxPayload(t *testing.T) {
	srv := testenv.NATS(t, func(o *server.Options) { o.MaxPayload = 2000 })
	s := open(t, target{urls: srv.URL(), bucket: DefaultBucket})
	var err error
	for i := 0; i < 60 && err == nil; i++ {
		_, err = trySync(s, request("p", podName(i), 1))
	}
	require.ErrorContains(t, err, "max_payload of 2000")
	require.ErrorIs(t, err, nats.ErrMaxPayload)
}
