package meta

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/handlerproxy"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/httpproxy"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/permits"
)

const settingsPage = "docs/settings.md"

// update writes the page: go test ./internal/meta -run TestSettingsPage -update.
var update = flag.Bool("update", false, "write the settings into "+settingsPage)

// The page of settings has each setting of the library and of the proxies once, under its topic, as their tables say. With -update it is
// written. The ready-made programs have theirs in their own README.
func TestSettingsPage(t *testing.T) {
	for _, faults := range [][]error{
		config.Incomplete(opening.Fields()), config.Incomplete(httpproxy.Fields()), config.Incomplete(permits.Fields()),
		config.Incomplete(handlerproxy.Fields()),
	} {
		require.Empty(t, faults)
	}
	rows := merged(slices.Concat(
		config.Rows(opening.Fields()), named("http", config.Rows(httpproxy.Fields())), named("permits", config.Rows(permits.Fields())),
		config.Rows(handlerproxy.Fields()),
	))
	content, err := os.ReadFile(settingsPage)
	require.NoError(t, err)
	want, err := config.ReplaceTable(string(content), "settings", byTopic(t, rows))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(settingsPage, []byte(want), 0o600)) // it is there, and keeps its mode
		return
	}
	require.Equal(t, want, string(content), "run: go test ./internal/meta -run TestSettingsPage -update")
}

// named returns rows whose listen address says which command has that default.
func named(command string, rows []config.Row) []config.Row {
	for i := range rows {
		if rows[i].Key == "listen" {
			rows[i].Default = command + ": " + rows[i].Default
		}
	}
	return rows
}

// merged returns each setting of a topic once, with every default that it has.
func merged(rows []config.Row) []config.Row {
	var out []config.Row
	for _, r := range rows {
		i := slices.IndexFunc(out, func(o config.Row) bool { return o.Topic == r.Topic && o.Key == r.Key })
		switch {
		case i < 0:
			out = append(out, r)
		case out[i].Default != r.Default:
			out[i].Default += "; " + r.Default
		}
	}
	return out
}

// byTopic returns a heading with a table for each topic.
func byTopic(t *testing.T, rows []config.Row) string {
	t.Helper()
	var topics []string
	under := map[string][]config.Row{}
	for _, r := range rows {
		require.NotEmpty(t, r.Topic, r.Key)
		if !slices.Contains(topics, r.Topic) {
			topics = append(topics, r.Topic)
		}
		under[r.Topic] = append(under[r.Topic], r)
	}
	var b strings.Builder
	for _, topic := range topics {
		fmt.Fprintf(&b, "\n## %s\n\n%s", topic, config.RowTable(under[topic]))
	}
	return b.String() + "\n"
}

// No page has the reference of a setting a second time. Each proxy means something else by three of them.
func TestEachSettingIsDocumentedOnce(t *testing.T) {
	places := map[string]string{}
	for page, text := range pages(t) {
		for _, row := range regexp.MustCompile("(?m)^\\| `[^`]*`<br>`(\\w+)").FindAllStringSubmatch(text, -1) {
			if !slices.Contains([]string{"NUMATHROTTLE_PROXY_MAX_WAIT", "NUMATHROTTLE_PROXY_COST", "NUMATHROTTLE_PROXY_TAG"}, row[1]) {
				require.Empty(t, places[row[1]], "%s is in %s, too", row[1], page)
			}
			places[row[1]] = page
		}
	}
	require.Greater(t, len(places), 150)
}
