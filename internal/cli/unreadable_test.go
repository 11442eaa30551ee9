package cli

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// damaged are bodies that no document has.
var damaged = map[string][]byte{
	"garbage":       {0xff, 0, '{', '"'},
	"later version": []byte(`{"version":99,"colour":"red"}`),
	"truncated":     []byte(`{"pauses":[{"tag":"a","reas`),
	"one byte":      []byte("{"),
	"huge":          bytes.Repeat([]byte("x"), wire.MaxDocumentBytes),
}

// moreFlags are what commands need beside their names.
var moreFlags = map[string]string{"quota spent set": "acme --per=day --amount=7"}

// damage replaces a document of the pool "p".
func damage(t *testing.T, store driver.Store, name string, body []byte) {
	t.Helper()
	docs, _, err := store.Load(t.Context(), "p")
	require.NoError(t, err)
	d := driver.DocumentReport{Name: name, Body: body}
	for _, o := range docs {
		if o.Name == name {
			d.Base = o.Version
		}
	}
	d.Version = driver.NextVersion(d.Base, 1)
	_, err = store.Save(t.Context(), "p", d)
	require.NoError(t, err)
}

var replacing = regexp.MustCompile(`not readable +(\w+): .*; numathrottle (.+) replaces it`)

// requireReplaced runs the command that status names for a damaged document.
func requireReplaced(t *testing.T, tm *terminal, document string) {
	t.Helper()
	out, err := tm.run(t, "status")
	require.NoError(t, err)
	found := replacing.FindStringSubmatch(out)
	require.NotNil(t, found, out)
	require.Equal(t, document, found[1])
	out, err = tm.run(t, "why")
	require.NoError(t, err)
	require.Contains(t, out, "numathrottle "+found[2]+" --pool p")
	_, err = tm.run(t, append(strings.Fields(found[2]+" "+moreFlags[found[2]]), "--pool=p")...)
	require.NoError(t, err)
	out, err = tm.run(t, "status")
	require.NoError(t, err)
	require.NotContains(t, out, "not readable")
}

// Whatever is on record, status and why name a command that lets the pods go on.
func TestWhatReplacesAnUnreadableDocument(t *testing.T) {
	for _, document := range []string{"limit", "pause", "ramp", "backoff", "quota", "spent", "debt"} {
		for name, body := range damaged {
			t.Run(document+"/"+name, func(t *testing.T) {
				withQuotas(t, func(t *testing.T, store driver.Store, th *throttle.Throttle) {
					damage(t, store, document, body)
					time.Sleep(2 * driver.DefaultLease)
					tm := newTerminal(store, "NUMATHROTTLE_POOL=p")
					requireReplaced(t, tm, document)
					time.Sleep(2 * time.Second)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					_, err := th.Acquire(ctx, 5)
					require.NoError(t, err)
				})
			})
		}
	}
}

func TestWhatReplacesAnUnreadableDocumentOnRealStores(t *testing.T) {
	onRealStores(t, func(t *testing.T, url string) {
		store, err := numathrottle.OpenStore(t.Context(), numathrottle.Config{Store: url})
		require.NoError(t, err)
		defer func() { require.NoError(t, store.Close()) }()
		pod := join(store, "p", "a", "1 0 600 60000000 0 0", driver.Whole, 1)
		tm := newTerminal(nil, "NUMATHROTTLE_POOL=p", "NUMATHROTTLE_STORE="+url)
		for _, document := range []string{"limit", "pause", "ramp", "backoff", "quota", "spent", "debt"} {
			for _, body := range damaged {
				pod.sync(t) // a silent pod is another cause
				damage(t, store, document, body)
				requireReplaced(t, tm, document)
			}
		}
	})
}

// spoiled are values of a document's field on Redis whose head is damaged: no version can be read, or nothing stands behind it.
var spoiled = map[string]string{"empty": "", "version alone": "319", "first byte": "x19 {}"}

// On Redis each document has a field of its own. If not even its version can be read, the same commands help, whatever else the hash has.
func TestWhatReplacesADocumentWithoutAVersion(t *testing.T) {
	server := testenv.Redis(t)
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { require.NoError(t, c.Close()) }()
	url := "redis://" + server.Addr()
	store, err := numathrottle.OpenStore(t.Context(), numathrottle.Config{Store: url})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	pod := join(store, "p", "a", "1 0 600 60000000 0 0", driver.Whole, 1)
	pod.sync(t)
	keys, err := c.Keys(t.Context(), "*:pool:p").Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.NoError(t, c.HSet(t.Context(), keys[0], "foreign", "x", "\x00foreign", "x", "foreign\x00", "x").Err())
	tm := newTerminal(nil, "NUMATHROTTLE_POOL=p", "NUMATHROTTLE_STORE="+url)
	for _, document := range []string{"limit", "pause", "ramp", "backoff", "quota", "spent", "debt"} {
		for name, value := range spoiled {
			t.Run(document+"/"+name, func(t *testing.T) {
				require.NoError(t, c.HSet(t.Context(), keys[0], "\x00doc\x00"+document, value).Err())
				pod.sync(t)
				requireReplaced(t, tm, document)
				pod.sync(t)
			})
		}
	}
	require.NoError(t, c.HSet(t.Context(), keys[0], "b\x001", "0 1 x").Err())
	for _, command := range []string{"status", "why", "pause clear"} {
		_, err = tm.run(t, strings.Fields(command)...)
		require.ErrorContains(t, err, "a row is malformed: \"b\\x001\"; delete the pool's key")
	}
	require.NoError(t, c.Del(t.Context(), keys[0]).Err())
	ans, err := store.Sync(t.Context(), driver.Request{
		Pool: "p", ID: "c", Incarnation: "1", Seq: 1, Nonce: 1, Lease: driver.DefaultLease, Report: driver.Report{Wanted: driver.Whole},
	})
	require.NoError(t, err)
	require.Equal(t, driver.FreezeNewRecord, ans.FrozenBy)
	require.Zero(t, ans.Share)
}

// Without its pauses nobody knows which tag is paused. The whole pool can be stopped even so.
func TestPausesOverAnUnreadableDocument(t *testing.T) {
	withQuotas(t, func(t *testing.T, store driver.Store, _ *throttle.Throttle) {
		tm := newTerminal(store, "NUMATHROTTLE_POOL=p")
		damage(t, store, "pause", damaged["garbage"])
		for _, args := range []string{"resume --tag acme", "pause set --tag acme"} {
			_, err := tm.run(t, strings.Fields(args)...)
			require.ErrorContains(t, err, "numathrottle resume without a tag")
		}
		out, err := tm.run(t, "pause", "set", "--by=ann")
		require.NoError(t, err)
		require.Equal(t, "p: paused until it is cleared by ann\n", out)
		damage(t, store, "pause", damaged["garbage"])
		out, err = tm.run(t, "resume")
		require.NoError(t, err)
		require.Equal(t, "p: pauses that this command cannot read have ended\np: not paused\n", out)
		damage(t, store, "quota", damaged["garbage"])
		_, err = tm.run(t, "quota", "set", "acme", "--total=5")
		require.ErrorContains(t, err, "numathrottle quota clear --all")
		out, err = tm.run(t, "quota", "clear", "acme")
		require.NoError(t, err)
		require.Equal(t, "p: tag acme <empty>\n", out)
	})
}

// However many tags callers have paused, an operator can pause the pool, and some more tags; then the error says what to do.
func TestCallersLeaveRoomForAnOperatorsPauses(t *testing.T) {
	for _, reason := range []int{30, 128} {
		testRoomForOperators(t, strings.Repeat("r", reason))
	}
}

func testRoomForOperators(t *testing.T, reason string) {
	t.Helper()
	withQuotas(t, func(t *testing.T, store driver.Store, th *throttle.Throttle) {
		callers := 0
		for ; ; callers++ {
			if _, err := th.Pause(t.Context(), time.Time{}, reason, throttle.PauseTag(strings.Repeat("t", callers+1))); err != nil {
				require.ErrorContains(t, err, "the rest of the room is for operators and the whole pool")
				break
			}
		}
		_, held := th.Paused(strings.Repeat("t", callers+1))
		require.False(t, held, "what was refused pauses nobody here either")
		tm := newTerminal(store, "NUMATHROTTLE_POOL=p")
		operators := 0
		for ; ; operators++ {
			if _, err := tm.run(t, "pause", "set", "--tag="+strings.Repeat("o", operators+1), "--reason=maintenance", "--by=ann"); err != nil {
				require.ErrorContains(t, err, "end one first (numathrottle pause clear --tag TAG)")
				require.Equal(t, ExitRefused, ExitCode(err))
				break
			}
		}
		require.GreaterOrEqual(t, callers, 6)
		require.GreaterOrEqual(t, operators, 3)
		out, err := tm.run(t, "pause", "set", "--by=ann", "--for=1h", "--reason="+strings.Repeat("r", 128))
		require.NoError(t, err)
		require.Equal(t, callers+operators+1, strings.Count(out, "\n"))
		time.Sleep(2 * time.Second)
		require.Equal(t, "ann", th.Status().Paused.By)
		_, err = th.Pause(t.Context(), time.Now().Add(time.Minute), "", throttle.PauseTag("t"))
		require.NoError(t, err, "a tag that is paused is paused on")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = th.Acquire(ctx, 1)
		require.ErrorIs(t, err, throttle.ErrThrottled)
	})
}
