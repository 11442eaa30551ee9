package natsstore

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
)

// unreachable is a URL at which nobody listens, with a secret.
const unreachable = "nats://someone:hunter2@127.0.0.1:1"

func TestNewRefusesOptionsOutOfRange(t *testing.T) {
	nc, err := nats.Connect(unreachable, ConnectOptions()...)
	require.NoError(t, err)
	defer nc.Close()
	for _, tt := range []struct {
		opt  Option
		want string
	}{
		{WithBucket(""), `bucket is "", allowed: 1 to 128 letters`},
		{WithBucket("a.b"), `bucket is "a.b"`},
		{WithBucket("a b"), `bucket is "a b"`},
		{WithBucket("größe"), "bucket is"},
		{WithBucket(strings.Repeat("x", 129)), "bucket is"},
		{WithReplicas(0), "replicas is 0, allowed: 1 to 5"},
		{WithReplicas(6), "replicas is 6"},
		{WithMaxBytes(-1), "max bytes is -1, allowed: 65536 or more"},
		{WithLongestLease(0), "longest lease is 0s, allowed: 1ms to 10s"},
		{WithLongestLease(time.Minute), "longest lease is 1m0s"},
		{WithLogger(nil), "logger is nil"},
	} {
		_, err := New(nc, tt.opt)
		require.ErrorContains(t, err, tt.want)
	}
	_, err = New(nil, WithBucket("a.b"), WithReplicas(9))
	require.ErrorContains(t, err, "the connection is nil")
	require.ErrorContains(t, err, "bucket is")
	require.ErrorContains(t, err, "replicas is", "all faults in one error")
}

// The server is not there: New does not mind, and a sync says so without the secret.
func TestUnreachable(t *testing.T) {
	nc, err := nats.Connect(unreachable, append(ConnectOptions(), errorHandler(silent))...)
	require.NoError(t, err)
	defer nc.Close()
	s, err := New(nc)
	require.NoError(t, err)
	_, err = trySync(s, request("p", "a", 1))
	require.ErrorContains(t, err, "not connected to NATS")
	require.NotContains(t, err.Error(), "hunter2")
	require.NotContains(t, err.Error(), "someone")
	require.NoError(t, s.Close())
}

func TestWithoutJetStream(t *testing.T) {
	srv := testenv.NATS(t, func(o *server.Options) { o.JetStream = false })
	_, err := trySync(open(t, target{urls: srv.URL(), bucket: DefaultBucket}), request("p", "a", 1))
	require.ErrorIs(t, err, nats.ErrNoResponders)
	require.ErrorContains(t, err, "JetStream is not enabled")
}

func TestAccountWithoutJetStream(t *testing.T) {
	srv := testenv.NATSBinary(t, `accounts { A { users: [{user: a, password: hunter2}] }, B { jetstream: enabled, users: [{user: b, password: b}] } }`,
		`no_auth_user: b`)
	s, err := New(connect(t, srv.URL(), nats.UserInfo("a", "hunter2")), WithLogger(silent))
	require.NoError(t, err)
	_, err = trySync(s, request("p", "a", 1))
	require.ErrorContains(t, err, "JetStream")
	require.ErrorContains(t, err, "enabled")
	require.NotContains(t, err.Error(), "hunter2")
}

// documented is what a user must be allowed to publish.
var documented = []string{
	"$JS.API.STREAM.INFO.KV_numathrottle", "$JS.API.STREAM.CREATE.KV_numathrottle", "$JS.API.STREAM.MSG.GET.KV_numathrottle", "$KV.numathrottle.>",
}

// withUsers starts a server on which users may publish and hear so much, and returns what opens a Store as one of them.
func withUsers(t *testing.T, publish, subscribe map[string][]string) (as func(name string) *Store) {
	t.Helper()
	srv := testenv.NATS(t, func(o *server.Options) {
		for name, subjects := range publish {
			o.Users = append(o.Users, &server.User{Username: name, Password: "hunter2", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Allow: subjects}, Subscribe: &server.SubjectPermission{Allow: subscribe[name]},
			}})
		}
	})
	return func(name string) *Store {
		s, err := New(connect(t, srv.URL(), nats.UserInfo(name, "hunter2")), WithLogger(silent))
		require.NoError(t, err)
		return s
	}
}

// A server drops what a user may not publish; the error says which permission.
func TestMissingPermissions(t *testing.T) {
	inbox := []string{"_INBOX.>"}
	as := withUsers(t, map[string][]string{
		"all": documented, "no-get": append([]string{documented[3]}, documented[:2]...), "no-write": documented[:3], "no-inbox": documented,
	}, map[string][]string{"all": inbox, "no-get": inbox, "no-write": inbox, "no-inbox": {"elsewhere"}})
	mustSync(t, as("all"), request("p", "a", 1))
	for name, want := range map[string]string{
		"no-get":   `Permissions Violation for Publish to "$JS.API.STREAM.MSG.GET.KV_numathrottle"`,
		"no-write": `Permissions Violation for Publish to "$KV.numathrottle.p"`,
		"no-inbox": `Permissions Violation for Subscription to "_INBOX.`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := trySync(as(name), request("p", "b", 1))
			require.ErrorContains(t, err, "the user lacks a permission")
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}
