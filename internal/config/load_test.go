package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// canary is a secret that must not come out.
const canary = "hunter2-canary"

type settings struct {
	Max         int
	Per         time.Duration
	Mode        string
	Pool        string
	Fast        bool
	Store       string
	secret      string
	StoreCAFile string
}

var table = []Field[*settings]{
	{
		Key: "max", Allowed: "0 to 100", Value: Int(func(s *settings) *int { return &s.Max }),
		Range: func(s *settings) bool { return s.Max >= 0 && s.Max <= 100 },
	},
	{Key: "per", Allowed: "a duration above 0", Value: Duration(func(s *settings) *time.Duration { return &s.Per })},
	{Key: "onStoreLoss", Allowed: "stop or degrade", Value: Choice(func(s *settings) *string { return &s.Mode }, "degrade", "stop")},
	{Key: "pool", Allowed: "a text", Value: Text(func(s *settings) *string { return &s.Pool })},
	{Key: "failFast", Allowed: "true or false", Value: Bool(func(s *settings) *bool { return &s.Fast })},
	{Key: "store", Allowed: "a store URL", Value: Store(func(s *settings) *string { return &s.Store })},
	{Key: "storePassword", Allowed: "a text", Value: Secret(
		func(s *settings, text string) { s.secret = TrimLineEnd(text) }, func(s *settings) string { return s.secret },
	)},
	{Key: "storeCAFile", Allowed: "a path", Value: Text(func(s *settings) *string { return &s.StoreCAFile })},
}

// load runs Load with a file of this content, if it is not empty, and variables.
// In what it returns the file is called FILE. It fails the test when a fault shows
// the canary or takes more than a line.
func load(t *testing.T, file string, environ ...string) (settings, []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if file != "" {
		require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
		environ = append(environ, "NUMATHROTTLE_CONFIG="+path)
	}
	var s settings
	var lines []string
	for _, fault := range Load(table, environ, &s) {
		require.NotContains(t, fault.Error(), canary)
		require.NotContains(t, fault.Error(), "\n")
		lines = append(lines, strings.ReplaceAll(fault.Error(), path, "FILE"))
	}
	return s, lines
}

func TestVariable(t *testing.T) {
	for key, want := range map[string]string{
		"max":            "NUMATHROTTLE_MAX",
		"onStoreLoss":    "NUMATHROTTLE_ON_STORE_LOSS",
		"storeCAFile":    "NUMATHROTTLE_STORE_CA_FILE",
		"rampUpDuration": "NUMATHROTTLE_RAMP_UP_DURATION",
		"ttl":            "NUMATHROTTLE_TTL",
	} {
		require.Equal(t, want, Variable(key))
	}
}

func TestLoadReadsFileAndEnvironment(t *testing.T) {
	want := settings{Max: 7, Per: time.Minute, Mode: "stop", Pool: "a/b", Fast: true, Store: "redis://h", secret: canary, StoreCAFile: "/ca"}
	file := "max: 7\nper: 1m\nonStoreLoss: stop\npool: a/b\nfailFast: true\nstore: redis://h\nstorePassword: " + canary + "\nstoreCAFile: /ca\n"
	environ := []string{
		"NUMATHROTTLE_MAX=7", "NUMATHROTTLE_PER=1m", "NUMATHROTTLE_ON_STORE_LOSS=stop", "NUMATHROTTLE_POOL=a/b",
		"NUMATHROTTLE_FAIL_FAST=true", "NUMATHROTTLE_STORE=redis://h", "NUMATHROTTLE_STORE_PASSWORD=" + canary, "NUMATHROTTLE_STORE_CA_FILE=/ca",
	}
	for name, run := range map[string]func() (settings, []string){
		"file":        func() (settings, []string) { return load(t, file) },
		"environment": func() (settings, []string) { return load(t, "", environ...) },
		"environment wins": func() (settings, []string) {
			return load(t, "max: 3\nper: 2s\nonStoreLoss: degrade\npool: x\nfailFast: false\nstore: nats://h\nstorePassword: x\n", environ...)
		},
		"mixed":  func() (settings, []string) { return load(t, strings.Replace(file, "max: 7\n", "", 1), environ[0]) },
		"quoted": func() (settings, []string) { return load(t, strings.Replace(file, "7", `"7"`, 1)) },
		"anchor": func() (settings, []string) { return load(t, strings.Replace(file, "pool: a/b", "pool: &p a/b", 1)) },
		"JSON": func() (settings, []string) {
			return load(t, `{"max": 7, "per": "1m", "onStoreLoss": "stop", "pool": "a/b", "failFast": true, "store": "redis://h", `+
				`"storePassword": "`+canary+`", "storeCAFile": "/ca"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, faults := run()
			require.Empty(t, faults)
			require.Equal(t, want, got)
		})
	}
}

func TestLoadOfNothing(t *testing.T) {
	for _, file := range []string{"", "\n", "# nothing but a comment\n", "---\n", "{}\n"} {
		got, faults := load(t, file, "PATH=/bin", "OTHER_MAX=1", "NUMAFLOW_POD=p")
		require.Empty(t, faults, "file %q", file)
		require.Zero(t, got)
	}
}

func TestLoadFollowsAliases(t *testing.T) {
	got, faults := load(t, "pool: &x stop\nonStoreLoss: *x\n")
	require.Empty(t, faults)
	require.Equal(t, settings{Pool: "stop", Mode: "stop"}, got)
}

func TestLoadFaultsInVariables(t *testing.T) {
	for entry, want := range map[string]string{
		"MAX=abc":                           `max is "abc" (NUMATHROTTLE_MAX), allowed: 0 to 100`,
		"MAX=":                              `max is empty (NUMATHROTTLE_MAX), allowed: 0 to 100; leave it out for the default`,
		"MAX= 5":                            `max is " 5" (NUMATHROTTLE_MAX), allowed: 0 to 100`,
		"MAX=1_0":                           `max is "1_0" (NUMATHROTTLE_MAX), allowed: 0 to 100`,
		"MAX=010":                           `max is "010" (NUMATHROTTLE_MAX), allowed: 0 to 100`,
		"MAX=+5":                            `max is "+5" (NUMATHROTTLE_MAX), allowed: 0 to 100`,
		"MAX=0x10":                          `max is "0x10" (NUMATHROTTLE_MAX), allowed: 0 to 100`,
		"MAX=1e1":                           `max is "1e1" (NUMATHROTTLE_MAX), allowed: 0 to 100`,
		"MAX=1.0":                           `max is "1.0" (NUMATHROTTLE_MAX), allowed: 0 to 100`,
		"MAX=0.5":                           `max is "0.5"; use max: 1, per: 2s (NUMATHROTTLE_MAX), allowed: 0 to 100`,
		"MAX=-1":                            `max is "-1" (NUMATHROTTLE_MAX), allowed: 0 to 100`,
		"MAX=101":                           `max is "101" (NUMATHROTTLE_MAX), allowed: 0 to 100`,
		"MAX=99999999999999999999":          `max is "99999999999999999999" (NUMATHROTTLE_MAX), allowed: 0 to 100`,
		"PER=1":                             `per is "1"; did you mean 1s? (NUMATHROTTLE_PER), allowed: a duration above 0`,
		"PER=0s":                            `per is "0s" (NUMATHROTTLE_PER), allowed: a duration above 0`,
		"PER=-1s":                           `per is "-1s" (NUMATHROTTLE_PER), allowed: a duration above 0`,
		"PER=1 s":                           `per is "1 s"; did you mean 1s? (NUMATHROTTLE_PER), allowed: a duration above 0`,
		"PER=99999999h":                     `per is "99999999h" (NUMATHROTTLE_PER), allowed: a duration above 0`,
		"ON_STORE_LOSS=Stop":                `onStoreLoss is "Stop"; did you mean stop? (NUMATHROTTLE_ON_STORE_LOSS), allowed: stop or degrade`,
		"FAIL_FAST=yes":                     `failFast is "yes" (NUMATHROTTLE_FAIL_FAST), allowed: true or false`,
		"FAIL_FAST=TRUE":                    `failFast is "TRUE" (NUMATHROTTLE_FAIL_FAST), allowed: true or false`,
		"POOL= a":                           `pool is " a" (NUMATHROTTLE_POOL), allowed: a text`,
		"POOL=a\nb":                         `pool is "a\nb" (NUMATHROTTLE_POOL), allowed: a text`,
		"POOL=\xff":                         `pool is "\xff" (NUMATHROTTLE_POOL), allowed: a text`,
		"STORE_PASSWORD=":                   `storePassword is empty (NUMATHROTTLE_STORE_PASSWORD), allowed: a text; leave it out for the default`,
		"MAXX=1":                            `NUMATHROTTLE_MAXX is not a variable of numathrottle; did you mean NUMATHROTTLE_MAX?`,
		"ONSTORELOSS=stop":                  `NUMATHROTTLE_ONSTORELOSS is not a variable of numathrottle; did you mean NUMATHROTTLE_ON_STORE_LOSS?`,
		"STORE_PASWORD=" + canary:           `NUMATHROTTLE_STORE_PASWORD is not a variable of numathrottle; did you mean NUMATHROTTLE_STORE_PASSWORD?`,
		"STORE_URL=redis://" + canary:       `NUMATHROTTLE_STORE_URL is not a variable of numathrottle; did you mean NUMATHROTTLE_STORE?`,
		"CONFIGURATION=/x":                  `NUMATHROTTLE_CONFIGURATION is not a variable of numathrottle; did you mean NUMATHROTTLE_CONFIG?`,
		"STROE=x":                           `NUMATHROTTLE_STROE is not a variable of numathrottle; did you mean NUMATHROTTLE_STORE?`,
		"BANANA=1":                          `NUMATHROTTLE_BANANA is not a variable of numathrottle`,
		"PORT=tcp://10.0.0.1:6379":          `NUMATHROTTLE_PORT is not a variable of numathrottle`,
		"CONFIG=":                           `NUMATHROTTLE_CONFIG is empty, allowed: the path of a YAML file; unset it for none`,
		"CONFIG=/nonexistent/x.yaml":        `NUMATHROTTLE_CONFIG is "/nonexistent/x.yaml", which cannot be read: no such file or directory`,
		"CONFIG=/":                          `NUMATHROTTLE_CONFIG is "/", which cannot be read: is a directory`,
		"POOL=" + strings.Repeat("x", 5000): `pool is "` + strings.Repeat("x", 60) + `"... (NUMATHROTTLE_POOL), allowed: a text`,
	} {
		got, faults := load(t, "", "NUMATHROTTLE_"+entry)
		require.Equal(t, []string{"numathrottle: " + want}, faults, "%.40q", entry)
		require.Zero(t, got, "a setting with a fault keeps its value: %.40q", entry)
	}
}

func TestLoadFaultsInFile(t *testing.T) {
	const (
		names  = "max, per, onStoreLoss, pool, failFast, store, storePassword, storeCAFile"
		noYAML = "NUMATHROTTLE_CONFIG is not valid YAML: "
	)
	for file, want := range map[string]string{
		"pool: p\nmax: abc\n":            `max is "abc" (FILE:2), allowed: 0 to 100`,
		"max: 1\nmax: 2\n":               `max is given twice, first in line 1 (FILE:2)`,
		"\n\nmaxx: 1\n":                  `maxx is not a setting; did you mean max? (FILE:3)`,
		"on_store_loss: stop\n":          `on_store_loss is not a setting; did you mean onStoreLoss? (FILE:1)`,
		"Max: 1\n":                       `Max is not a setting; did you mean max? (FILE:1)`,
		"storePasword: " + canary + "\n": `storePasword is not a setting; did you mean storePassword? (FILE:1)`,
		"banana: 1\n":                    `banana is not a setting; there are ` + names + ` (FILE:1)`,
		"max:\n":                         `max is empty (FILE:1), allowed: 0 to 100; leave it out for the default`,
		"max: null\n":                    `max is empty (FILE:1), allowed: 0 to 100; leave it out for the default`,
		`max: ""`:                        `max is empty (FILE:1), allowed: 0 to 100; leave it out for the default`,
		"max: 1_0\n":                     `max is "1_0" (FILE:1), allowed: 0 to 100`,
		"max: 0o17\n":                    `max is "0o17" (FILE:1), allowed: 0 to 100`,
		"max: [1]\n":                     `max is a list (FILE:1), allowed: 0 to 100`,
		"store:\n  url: redis://:" + canary + "@h\n": `store is a mapping (FILE:2), allowed: a store URL`,
		"storePassword: [" + canary + "]\n":          `storePassword is a list (FILE:1), allowed: a text`,
		"storePassword: !secret " + canary + "\n":    `storePassword has a tag (!name) (FILE:1), allowed: a text`,
		"storePassword: !!binary aHVudGVy\n":         `storePassword has a tag (!name) (FILE:1), allowed: a text`,
		"failFast: yes\n":                            `failFast is "yes" (FILE:1), allowed: true or false`,
		"- max: 1\n":                                 `NUMATHROTTLE_CONFIG holds a list (FILE:1), allowed: settings as ` + "`name: value`",
		"just " + canary + "\n":                      `NUMATHROTTLE_CONFIG holds a single value (FILE:1), allowed: settings as ` + "`name: value`",
		"max: 1\n---\nmax: 2\n":                      `NUMATHROTTLE_CONFIG holds a second document (FILE:2), allowed: one`,
		"[a]: 1\n":                                   `NUMATHROTTLE_CONFIG has a name that is a list (FILE:1), allowed: a text`,
		"pool: \"\\u0007\"\n":                        `pool is "\a" (FILE:1), allowed: a text`,
		"max: 1\n  per: 2s\n":                        noYAML + `line 2: mapping values are not allowed in this context (FILE)`,
		"storePassword: *" + canary + "\n":           noYAML + `an alias (*name) without its anchor; put a value that begins with * into quotes (FILE)`,
		"storePassword: '" + canary + "\n":           ``,
		"storePassword: @" + canary + "\n":           ``,
		"storePassword: \"\\q" + canary + "\"\n":     ``,
		"storePassword: %" + canary + "\n":           ``,
		"storePassword: !<" + canary + "\n":          ``,
		"storePassword: !no!" + canary + " x\n":      ``,
		"storePassword: |9z\n " + canary + "\n":      ``,
		"\xff\xfe" + canary:                          ``,
		"storePassword: \x01" + canary + "\n":        ``,
		"storePassword: &a {" + canary + ": *a}\n":   ``,
		strings.Repeat("# "+canary+"\n", 80_000):     `NUMATHROTTLE_CONFIG is "FILE", which cannot be read: it is longer than 1048576 bytes`,
		strings.Repeat("[", 20_000):                  ``,
	} {
		_, faults := load(t, file)
		require.Len(t, faults, 1, "%.40q", file)
		if want != "" {
			require.Equal(t, "numathrottle: "+want, faults[0], "%.40q", file)
		}
	}
}

func TestLoadReportsEverythingInOrder(t *testing.T) {
	file := "banana: 1\nper: x\nmax: y\nstorePassword: [1]\n"
	environ := []string{
		"NUMATHROTTLE_ZEBRA=1", "NUMATHROTTLE_APE=1", "NUMATHROTTLE_FAIL_FAST=x", "NUMATHROTTLE_PER=x", "NUMATHROTTLE_MAX=x",
		"numathrottle_pool=x",
	}
	want := []string{
		"banana", "per", "max", "storePassword", // the file by line
		"max", "per", "failFast", // variables in the order of the table
		"NUMATHROTTLE_APE", "NUMATHROTTLE_ZEBRA", "numathrottle_pool", // unknown ones by name
	}
	for range 20 {
		_, faults := load(t, file, environ...)
		var names []string
		for _, line := range faults {
			names = append(names, strings.Fields(line)[1])
		}
		require.Equal(t, want, names)
		slices.Reverse(environ)
	}
}

func TestLoadLeavesVariablesOfServicesAlone(t *testing.T) {
	// As Kubernetes sets them for the Services numathrottle-redis and numathrottle.
	services := []string{
		"NUMATHROTTLE_REDIS_SERVICE_HOST=10.0.0.1", "NUMATHROTTLE_REDIS_SERVICE_PORT=6379", "NUMATHROTTLE_REDIS_SERVICE_PORT_REDIS=6379",
		"NUMATHROTTLE_REDIS_PORT=tcp://10.0.0.1:6379", "NUMATHROTTLE_REDIS_PORT_6379_TCP=tcp://10.0.0.1:6379",
		"NUMATHROTTLE_REDIS_PORT_6379_TCP_PROTO=tcp", "NUMATHROTTLE_REDIS_PORT_6379_TCP_PORT=6379", "NUMATHROTTLE_REDIS_PORT_6379_TCP_ADDR=10.0.0.1",
		"NUMATHROTTLE_SERVICE_HOST=10.0.0.2", "NUMATHROTTLE_SERVICE_PORT=80", "NUMATHROTTLE_PORT=tcp://10.0.0.2:80",
	}
	_, faults := load(t, "", services...)
	require.Empty(t, faults)
	_, faults = load(t, "", append(services, "NUMATHROTTLE_REDIS_MAX=1")...)
	require.Len(t, faults, 1)
}

func TestCheckAndShow(t *testing.T) {
	s := settings{Max: 500, Per: -time.Second, Mode: "x", Pool: "a\nb", Store: "redis://:" + canary + "@h/1?prefix=p", secret: canary}
	var lines []string
	for _, fault := range Check(table, &s) {
		lines = append(lines, fault.Error())
	}
	require.Equal(t, []string{
		`numathrottle: max is "500", allowed: 0 to 100`,
		`numathrottle: per is "-1s", allowed: a duration above 0`,
		`numathrottle: onStoreLoss is "x", allowed: stop or degrade`,
		`numathrottle: pool is "a\nb", allowed: a text`,
	}, lines)
	require.Empty(t, Check(table, &settings{}))

	s.Fast = true
	require.Equal(t, []Setting{
		{"max", "500"},
		{"per", "-1s"},
		{"onStoreLoss", "x"},
		{"pool", "a\nb"},
		{"failFast", "true"},
		{"store", "redis://***@h/1?prefix=p"},
		{"storePassword", Redacted},
	}, Show(table, &s))
	require.Empty(t, Show(table, &settings{}))
}

func TestJoinTakesJoinedErrorsApart(t *testing.T) {
	one, two, three := os.ErrExist, os.ErrClosed, os.ErrInvalid
	err := Join([]error{Join([]error{one, nil, Join([]error{two})}), three, nil})
	require.Equal(t, one.Error()+"\n"+two.Error()+"\n"+three.Error(), err.Error())
	require.ErrorIs(t, err, two)
	require.NoError(t, Join(nil))
	require.NoError(t, Join([]error{nil}))
}
