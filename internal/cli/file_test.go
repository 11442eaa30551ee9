package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// withFile returns a pool with a changed settings file in force, and a pod with an older one.
func withFile(t *testing.T, body string) func(store driver.Store, pool string) {
	t.Helper()
	return func(store driver.Store, pool string) {
		p := join(store, pool, "a", "1 0 600 60000000 0 0 y:00000001!r", driver.Whole, 1)
		p.sync(t)
		_, err := store.Save(context.Background(), pool, driver.DocumentReport{Name: "file", Version: 1, Body: []byte(body)})
		require.NoError(t, err)
		p.sync(t)
	}
}

// The file in force is shown, with the files of the pods, and ended.
func TestFileInForce(t *testing.T) {
	const body = `{"name":"config.yaml","hash":"1f3c5d7e","max":300,"per":"1m0s","quotas":{"other":{"total":5}},"logLevel":"warn","count":2,` +
		`"seen":["00000001"]}`
	fill := withFile(t, body)
	const p = "orders/pipeline/enrich: "
	require.Equal(t, p+"config.yaml@1f3c5d7e counts for all pods: 300 per 1m, quotas, logLevel warn\n"+
		p+"a has 00000001, and now one that cannot be used, and needs a restart for some of it\n", show(t, fill, "file", "show"))
	var is fileStatus
	require.NoError(t, json.Unmarshal([]byte(show(t, fill, "file", "show", "--json")), &is))
	require.Equal(t, "config.yaml@1f3c5d7e 300 true warn", fmt.Sprint(is.InForce, " ", is.Limit.Max, " ", is.Quotas, " ", is.LogLevel))
	require.Equal(t, []podFile{{"a", "00000001", true, true}}, is.Pods)
	out := show(t, fill, "status")
	require.Contains(t, out, "\nlimit      300 per 1m, by config.yaml@1f3c5d7e\n")
	require.Contains(t, out, "\ndocuments  file\n")
	require.Contains(t, show(t, fill, "status", "--json"), `"file":"config.yaml@1f3c5d7e"`)
	require.Contains(t, show(t, fill, "why"), "no pod has that file any more: numathrottle file clear --pool ")
	require.Equal(t, p+"config.yaml@1f3c5d7e no longer counts, from the next sync of each pod on\n", show(t, fill, "file", "clear"))

	empty := func(store driver.Store, pool string) {
		join(store, pool, "a", "1 0 600 60000000 0 0", driver.Whole, 1).sync(t)
	}
	require.Equal(t, p+"no changed settings file was in force\n", show(t, empty, "file", "clear"))
	require.Equal(t, p+"no settings file has changed: pods go by those with which they have started\n", show(t, empty, "file", "show"))
	later := withFile(t, `{"hash":"1f3c5d7e","count":1,"banana":1}`)
	require.Contains(t, show(t, later, "status"), "numathrottle file clear replaces it")
	require.Contains(t, show(t, later, "file", "clear"), "cannot read have ended")
}
