package opening

import (
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/config"
)

var update = flag.Bool("update", false, "write the tables of docs/configuration.md anew")

const reference = "../../docs/configuration.md"

// TestReference compares the tables of store URLs in the documentation with those that follow from the code. With -update it
// writes them. The settings are in docs/settings.md, which internal/meta writes.
func TestReference(t *testing.T) {
	content, err := os.ReadFile(reference)
	require.NoError(t, err)
	want := string(content)
	for _, table := range []struct{ name, text string }{
		{"stores", config.StoreTable()},
		{"parameters", config.ParamTable()},
	} {
		want, err = config.ReplaceTable(want, table.name, table.text)
		require.NoError(t, err, reference)
	}
	if *update {
		require.NoError(t, os.WriteFile(reference, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(content), "run: go test ./internal/opening -run TestReference -update")
}

// TestFieldNames checks that a setting has one name in three spellings.
func TestFieldNames(t *testing.T) {
	inGo := map[string]bool{}
	for _, typ := range []reflect.Type{reflect.TypeFor[Config](), reflect.TypeOf(Config{}.Limit)} {
		for f := range typ.Fields() {
			if f.IsExported() && !slices.Contains([]string{"Limit", "Logger", "MeterProvider", "TracerProvider"}, f.Name) {
				inGo[f.Name] = true
			}
		}
	}
	for _, f := range fields {
		name := strings.ToUpper(f.Key[:1]) + f.Key[1:]
		switch f.Key {
		case "id", "ttl":
			name = strings.ToUpper(f.Key)
		case "modes": // Numaflow's name for the place of one mode
			name = "Mode"
		}
		require.True(t, inGo[name], "setting %s has no Go field %s", f.Key, name)
		delete(inGo, name)
	}
	require.Empty(t, inGo, "fields in Go that cannot be configured")
	require.Empty(t, config.Incomplete(fields))
}
