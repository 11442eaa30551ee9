package opening

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
)

const (
	schemaFile = "../../docs/numathrottle.schema.json"
	schemaID   = "https://raw.githubusercontent.com/numaproj-contrib/numathrottle/main/docs/numathrottle.schema.json"
)

// TestSchema compares the JSON schema of the configuration file with the one that follows from the settings. With -update it
// writes it.
func TestSchema(t *testing.T) {
	var want strings.Builder
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	require.NoError(t, e.Encode(config.FileSchema(fields, schemaID, "Configuration of numathrottle")))
	if *update {
		require.NoError(t, os.WriteFile(schemaFile, []byte(want.String()), 0o644))
		return
	}
	content, err := os.ReadFile(schemaFile)
	require.NoError(t, err)
	require.Equal(t, want.String(), string(content), "run: go test ./internal/opening -run TestSchema -update")
}

// A judge says what the schema and the real parser think of a file.
type judge struct{ schema *jsonschema.Schema }

func newJudge(t *testing.T) judge {
	t.Helper()
	content, err := os.ReadFile(schemaFile)
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(content)))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource(schemaID, doc))
	s, err := c.Compile(schemaID)
	require.NoError(t, err)
	return judge{s}
}

func (j judge) bySchema(t *testing.T, text string) error {
	t.Helper()
	var n yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(text), &n), text)
	if n.Kind == 0 {
		return nil
	}
	return j.schema.Validate(asJSON(t, n.Content[0]))
}

// asJSON is what an editor makes of a file: names are texts, and dates, too.
func asJSON(t *testing.T, n *yaml.Node) any {
	t.Helper()
	switch n.Kind { //nolint:exhaustive // the others are single values
	case yaml.AliasNode:
		return asJSON(t, n.Alias)
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = asJSON(t, n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		l := []any{}
		for _, item := range n.Content {
			l = append(l, asJSON(t, item))
		}
		return l
	}
	switch n.ShortTag() {
	case "!!int", "!!float", "!!bool", "!!null":
		var v any
		require.NoError(t, n.Decode(&v))
		return v
	}
	return n.Value
}

// byParser reads a file as a program does. What contradicts other settings does not count.
func byParser(t *testing.T, text string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	var c Config
	faults := config.Read(fields, nil, []string{config.FileVariable + "=" + file}, &c).Faults()
	if len(faults) == 0 {
		_, faults = config.ParseStore(c.Store)
	}
	return config.Join(faults)
}

// agree checks that both take a setting, or neither does.
func (j judge) agree(t *testing.T, key, value string, good bool) {
	t.Helper()
	text := key + ": " + value
	if good {
		require.NoError(t, byParser(t, text), text)
		require.NoError(t, j.bySchema(t, text), text)
		return
	}
	require.Error(t, byParser(t, text), text)
	require.Error(t, j.bySchema(t, text), text)
}

// Schema and parser agree on each setting: its example, its default, the ends of its range and what is just outside, and values of
// another type.
func TestSchemaAndParserAgree(t *testing.T) {
	j := newJudge(t)
	for i := range fields {
		f := &fields[i]
		row := config.Rows(fields[i : i+1])[0]
		t.Run(f.Key, func(t *testing.T) {
			good, bad := []string{row.Example}, []string{"", "[1]", "[]", `""`}
			if text := f.DefaultValue(); text != "" {
				good = append(good, text)
			}
			if kind, _, _ := strings.Cut(row.Type, ","); !slices.Contains([]string{"text", "secret", "path"}, kind) {
				bad = append(bad, "nonsense", "1.5")
			}
			if f.Key != "modes" && f.Key != "quotas" {
				bad = append(bad, "{a: 1}")
			}
			least, most := f.Bounds()
			switch {
			case strings.HasPrefix(row.Type, "integer"):
				good = append(good, strconv.FormatInt(least, 10), strconv.FormatInt(most, 10), fmt.Sprintf("%q", strconv.FormatInt(most, 10)))
				bad = append(bad, strconv.FormatInt(least-1, 10), strconv.FormatInt(most+1, 10), fmt.Sprintf("%q", strconv.FormatInt(most+1, 10)), "true", "1s")
			case row.Type == "duration":
				good = append(good, time.Duration(least).String(), time.Duration(most).String())
				bad = append(bad, time.Duration(least-1).String(), time.Duration(most+1).String(), "0s", "-1s", "5", "true", "1d", "1000000h")
			case row.Type == "boolean":
				good = append(good, "true", "false", `"true"`)
				bad = append(bad, "1", "0")
			case row.Type == "choice" && f.Key != "modes":
				for _, word := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(strings.Split(f.Allowed, ", with")[0], -1) {
					if word[1] != "hard" && word[1] != "strict" {
						good = append(good, word[1])
					}
				}
				bad = append(bad, strings.ToUpper(row.Example), "true", "1")
			case f.Key == "pool" || f.Key == "id":
				good = append(good, "x", strings.Repeat("x", maxName), "12")
				bad = append(bad, strings.Repeat("x", maxName+1), `" x"`, `"x\ty"`)
			}
			for _, value := range good {
				j.agree(t, f.Key, value, true)
			}
			for _, value := range bad {
				j.agree(t, f.Key, value, false)
			}
		})
	}
	for key, values := range map[string][]string{
		"modes": {
			"{goBackN: {coolDownPeriod: 500ms}}", "{goBackN: {coolDownPeriod: 24h0m1s}}", "{onlyIfUsed: {thresholdPercentage: 0}}",
			"{onlyIfUsed: {thresholdPercentage: 101}}", "{onlyIfUsed: {coolDownPeriod: 5s}}", "{scheduled: {}, relaxed: {}}", "{goBack: {}}", "scheduledd",
		},
		"quotas": {
			"{tags: {a: {reserved: one}}}", "{tags: {a: {totl: 1}}}", "{tags: [a]}", "{match: {a: {}}}", "{other: {per: 0s}}", "{other: {hard: maybe}}",
			"{other: {budgets: [{amunt: 1}]}}", "{all: {}}",
		},
		"store":      {"etcd://a", "redis:/a", "REDIS://a"},
		"stateDir":   {"var/run", "./x"},
		"healthAddr": {"8085", ":08", "host", ":x"},
		"nothing":    {"1"}, "Max": {"1"}, "mx": {"1"}, "tokensPerMinute": {"1"},
	} {
		for _, value := range values {
			j.agree(t, key, value, false)
		}
	}
	for _, value := range []string{
		"{goBackN: }", "{goBackN: {thresholdPercentage: '100', rampDownPercentage: 1, coolDownPeriod: 24h}}", "'{onlyIfUsed: {thresholdPercentage: 1}}'",
	} {
		j.agree(t, "modes", value, true)
	}
	for _, value := range []string{
		"{}", "{tags: , match: [], other: {}}", `{"tags": {12: {total: none}, b: }, "match": [{tag: "free/*", total: "0", per: 1h30m}]}`,
		"{other: {class: batch, weight: 1000, hard: true, budgets: [{amount: 2.5e6, per: day, zone: Europe/Berlin, then: batch}]}}",
	} {
		j.agree(t, "quotas", value, true)
	}
}

// A default that is given means what it means when it is left out.
func TestDefaultsAreTheDefaults(t *testing.T) {
	n := 0
	for i := range fields {
		f := &fields[i]
		text := f.DefaultValue()
		if text == "" || strings.HasPrefix(f.Key, "log") || f.Key == "max" { // with a Logger, and without a limit, nothing shows
			continue
		}
		n++
		base := []string{"NUMATHROTTLE_MAX=600", "NUMATHROTTLE_MIN=60", "NUMATHROTTLE_ID=a"}
		if f.Key == "maxReserved" || f.Key == "strict" {
			base = []string{"NUMATHROTTLE_MAX=600", "NUMATHROTTLE_ID=a"}
		}
		without, r := ReadFlags(base, nil)
		require.NoError(t, r.Err())
		with, r := ReadFlags(append(base, f.Variable()+"="+text), nil)
		require.NoError(t, r.Err())
		require.Equal(t, without.Effective(), with.Effective(), f.Key)
	}
	require.Greater(t, n, 10)
}

// A duration that the parser takes, the schema takes, however it is written; and it refuses most of the others. Parts of a nanosecond are
// left out: the parser drops them.
func TestSchemaTakesEveryDuration(t *testing.T) {
	j, rng := newJudge(t), rand.New(rand.NewPCG(1, 2))
	units, numbers := []string{"h", "m", "s", "ms", "us", "µs", "ns"}, []string{
		"0", "00", "1", "3", "9", "10", "24", "59", "60", "0.5", ".5", "1.", "1.0", "743", "744", "745", "999", "1000", "44640", "44641", "86400",
		"10000", "10000000", "2678400", "2678401", "0744", "744.0", "9.999",
	}
	wrong := map[bool]int{} // by whether the schema takes it
	for range 2000 {
		text := []string{"", "", "", "+"}[rng.IntN(4)]
		for range 1 + rng.IntN(3) {
			number, unit := numbers[rng.IntN(len(numbers))], units[rng.IntN(len(units))]
			if unit == "ns" {
				number = strings.ReplaceAll(number, ".", "")
			}
			text += number + unit
		}
		for _, key := range []string{"per", "ttl"} {
			var c Config
			takes := j.schema.Validate(map[string]any{key: text}) == nil
			if len(config.LoadFlags(fields, map[string]string{key: text}, &c)) == 0 {
				require.True(t, takes, "%s: %s", key, text)
			} else {
				wrong[takes]++
			}
		}
	}
	require.Less(t, wrong[true], wrong[false]/2, "the schema takes much that the parser refuses")
}

// Every file of settings, and every one on a page, is right by the schema.
func TestSchemaTakesTheExamples(t *testing.T) {
	j := newJudge(t)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	found := []string{}
	require.NoError(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return filepath.SkipDir
		}
		var texts []string
		switch filepath.Ext(path) {
		case ".md":
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, b := range blocks.FindAllStringSubmatch(string(content), -1) {
				texts = append(texts, b[1])
			}
		case ".yaml", ".yml":
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			texts = append(texts, string(content))
		}
		for _, text := range texts {
			if !isSettings(text) {
				continue
			}
			found = append(found, path)
			require.NoError(t, byParser(t, text), "%s: %s", path, text)
			require.NoError(t, j.bySchema(t, text), "%s: %s", path, text)
		}
		return nil
	}))
	require.GreaterOrEqual(t, len(found), 8)
}

// isSettings tells whether a text is a file of the settings of a limit: most of its names are, and it is none of a ready-made program.
func isSettings(text string) bool {
	var m map[string]any
	if yaml.Unmarshal([]byte(text), &m) != nil || len(m) == 0 {
		return false
	}
	known := 0
	if _, isValue := m["store"].(map[string]any); isValue { // of a chart
		return false
	}
	for key := range m {
		if slices.Contains([]string{"url", "model", "deployments", "tokensPerMinute", "requestsPerMinute", "unit", "format", "apiVersion", "kind"}, key) {
			return false
		}
		if slices.ContainsFunc(fields, func(f field) bool { return f.Key == key }) {
			known++
		}
	}
	return known > 0 && known*2 > len(m)
}
