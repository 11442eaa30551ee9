package config

import (
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// requireOneLine fails unless every fault is a *FieldError of one printable line of
// a length that can be read.
func requireOneLine(t *testing.T, faults []error) {
	t.Helper()
	for _, fault := range faults {
		_, ok := errors.AsType[*FieldError](fault)
		require.True(t, ok, "%T", fault)
		text := fault.Error()
		require.NotContains(t, text, "\n")
		require.True(t, utf8.ValidString(text), "%q", text)
		require.Less(t, len(text), 2000)
	}
}

// texts returns what faults say.
func texts(faults []error) []string {
	var out []string
	for _, fault := range faults {
		out = append(out, fault.Error())
	}
	return out
}

// asFile returns the YAML file that sets what s holds, or nil when no text in a
// YAML file can.
func asFile(t *testing.T, s *settings) []byte {
	t.Helper()
	values := map[string]string{}
	for _, shown := range Show(table, s) {
		values[shown.Key] = shown.Value
	}
	for key, text := range map[string]string{"store": s.Store, "storePassword": s.secret} {
		if text != "" {
			values[key] = text
		}
	}
	for _, text := range values {
		if !utf8.ValidString(text) {
			return nil
		}
	}
	content, err := yaml.Marshal(values)
	require.NoError(t, err)
	return content
}

// requireGood fails unless settings that came without a fault are in range, and
// mean the same when they are written to a file.
func requireGood(t *testing.T, s *settings) {
	t.Helper()
	content := asFile(t, s)
	if content == nil {
		return
	}
	var again settings
	require.Empty(t, texts(loadContent(table, nil, "FILE", content, &again)), "%q", content)
	require.Equal(t, *s, again, "%q", content)
}

// A file of any content sets what is in range and tells the rest in single lines,
// none of which shows what is set for a secret.
func FuzzLoadFile(f *testing.F) {
	for _, seed := range []string{
		"max: 7\nper: 1m\nonStoreLoss: stop\npool: a/b\nfailFast: true\nstore: redis://h\nstorePassword: x\nstoreCAFile: /ca\n",
		`{"max": 7, "per": "1m", "pool": "a/b", "failFast": true}`,
		"pool: &x stop\nonStoreLoss: *x\n", "pool: !!binary aGk=\n", "max: 1\nmax: 2\n", "? [a]\n: b\n", "<<: {max: 1}\n",
		"---\nmax: 1\n---\nmax: 2\n", "%YAML 1.1\n---\nmax: 1\n", "pool: |\n  a\n", "pool: 'a", "pool: \"\\x41\"\n", "- 1\n", "# x\n", "",
		"rampUpDuration: 1s\nmaxx: 1\n\"a\\nb\": 1\n", "per: 2001-01-01\n", "&a [*a]\n", "store:\n  url: redis://:x@h\n", "\xff\xfem\x00a\x00x\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		var s settings
		faults := loadContent(table, nil, "FILE", content, &s)
		requireOneLine(t, faults)
		require.Empty(t, Check(table, &s), "what is out of range is not set")
		var again settings
		require.Equal(t, texts(faults), texts(loadContent(table, nil, "FILE", content, &again)), "the same file, the same faults")
		require.Equal(t, s, again)
		if len(faults) == 0 {
			requireGood(t, &s)
		}

		// A secret in the line behind, whatever stands before it.
		var spoiled settings
		behind := append(slices.Clone(content), "\nstorePassword: "+canary+"\n"...)
		for _, text := range texts(loadContent(table, nil, "FILE", behind, &spoiled)) {
			require.NotContains(t, text, canary)
		}
	})
}

// Variables of any name and value set what is in range and tell the rest.
func FuzzLoadEnvironment(f *testing.F) {
	f.Add("MAX=7\nPER=1m\nON_STORE_LOSS=stop\nPOOL=a/b\nFAIL_FAST=true\nSTORE=redis://u:p@h\nSTORE_PASSWORD=x\nSTORE_CA_FILE=/ca")
	f.Add("MAX=+5\nPER=1\nFAIL_FAST=yes\nPOOL= a\nBANANA=1\nMAXX=1\nRAMP_UP_DURATION=1s\nSTORE_URL=x\nSTORE=")
	f.Add("REDIS_SERVICE_HOST=10.0.0.1\nREDIS_SERVICE_PORT=6379\nREDIS_PORT=tcp://10.0.0.1:6379\nREDIS_PORT_6379_TCP=x\nREDIS_MAX=1")
	f.Add("\xff0=1\na\x1bb=1") // names that are no text
	f.Add("MAX\n=\nMAX=1\nMAX=2\nPOOL=\xff\nCONFIG_=x")
	f.Fuzz(func(t *testing.T, text string) {
		var environ []string
		names := map[string]bool{}
		for line := range strings.SplitSeq(text, "\n") {
			name, _, _ := strings.Cut(line, "=")
			if name == "CONFIG" || strings.Contains(line, "\x00") {
				return // a file is another target; no variable holds NUL
			}
			names[name] = true
			environ = append(environ, Prefix+line)
		}
		environ = append(environ, "numathrottle_other=1", "PATH=/bin")

		var s settings
		faults := Load(table, environ, &s)
		requireOneLine(t, faults)
		require.Empty(t, Check(table, &s), "what is out of range is not set")
		require.Contains(t, texts(faults)[len(faults)-1], "numathrottle_other is not a variable")
		if len(faults) == 1 {
			requireGood(t, &s)
		}
		if len(names)+2 == len(environ) { // with a name twice the last one counts
			slices.Reverse(environ)
			var again settings
			require.Equal(t, texts(faults), texts(Load(table, environ, &again)), "the order does not matter")
			require.Equal(t, s, again)
		}
		environ = append(environ, Prefix+"STORE_PASSWORD="+canary, Prefix+"STORE_PASSWORT="+canary)
		for _, line := range texts(Load(table, environ, &s)) {
			require.NotContains(t, line, canary)
		}
	})
}

var decimal = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

// A value is taken when it is what the documentation says, and means the same
// when it is printed and read again.
func FuzzValues(f *testing.F) {
	for _, seed := range []string{
		"0", "7", "-1", "010", "1_0", "+5", "0x10", "1e1", "9223372036854775807", "9223372036854775808", "1m", "1.5h3ms", "-1s", "0s",
		"2562047h47m16.854775807s", "1µs", "true", "false", "TRUE", "stop", "degrade", "a b", " a", "a\n", "\u2028", "\xff", "9999999999999999999h", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := WholeNumber(text)
		exact, isNumber := new(big.Int).SetString(text, 10)
		require.Equal(t, isNumber && decimal.MatchString(text) && exact.IsInt64(), ok)
		if ok {
			require.Equal(t, exact.Int64(), int64(n))
		}
		for i := range table {
			field := &table[i]
			s := settings{Max: 1, Per: 2, Mode: "stop", Pool: "p", Fast: true, Store: "memory://", secret: "s", StoreCAFile: "c"}
			before := s
			if faults := bind(table[i:i+1], &s)[0].put(text, "SOURCE"); len(faults) > 0 {
				requireOneLine(t, []error{faults[0]})
				require.Equal(t, before, s, "a setting with a fault keeps its value")
				continue
			}
			require.True(t, bind(table[i:i+1], &s)[0].ok())
			if field.Value.secret {
				continue
			}
			shown := field.Value.in(&s).get()
			again := before
			if shown == "" { // the zero value
				require.Contains(t, []string{"0", "false"}, text, field.Key)
				continue
			}
			require.Empty(t, bind(table[i:i+1], &again)[0].put(shown, "SOURCE"), field.Key)
			require.Equal(t, s, again, field.Key)
			if field.Key == "per" {
				require.Positive(t, s.Per)
			}
		}
	})
}

// requireURL fails unless a URL that was taken names what a client can use.
func requireURL(t *testing.T, u *StoreURL) {
	t.Helper()
	require.NotNil(t, findScheme(u.scheme.name))
	require.Equal(t, u.scheme.hosts == oneHost || u.scheme.hosts == manyHosts, len(u.Hosts) > 0)
	for _, address := range u.Hosts {
		host, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		require.NotEmpty(t, host)
		n, err := strconv.ParseUint(port, 10, 16)
		require.NoError(t, err)
		require.NotZero(t, n)
	}
	require.True(t, u.DB >= 0 && u.DB <= 1_000_000 && u.Replicas >= 0 && u.Replicas <= 1_000_000)
	require.Equal(t, u.Kind == RedisSentinel, u.Master != "")
	require.LessOrEqual(t, len(u.Prefix), 128)
	require.NotContains(t, u.Prefix, "{")
	require.NotContains(t, u.Prefix, "}")
	require.Regexp(t, `^[A-Za-z0-9_-]{0,128}$`, u.Bucket)
	require.Regexp(t, `^[A-Za-z0-9._-]{0,253}$`, u.ServerName)
	require.Equal(t, u.HasUser, u.Username+u.Password != "")
	if u.Kind.IsRedis() && u.HasUser {
		require.NotEmpty(t, u.Password)
	}
}

// Any URL is told what is wrong with it in lines that do not show it, or names
// what a client can use, and means the same without its user.
func FuzzParseStore(f *testing.F) {
	for i := range schemes {
		f.Add(schemes[i].name + "://u:SECRET@h:1,[::1]/m?db=1&replicas=2")
		f.Add(schemes[i].name + "://h/1")
	}
	f.Add("static://?replicas=4")
	f.Add("redis://:p%40@h?prefix=%C3%A4+%2F&db=3")
	f.Add("nats://token@a,b:1,[::1]?bucket=b_1&replicas=3&serverName=s")
	f.Add("redis://" + strings.Repeat(",", 3000))
	f.Fuzz(func(t *testing.T, raw string) {
		u, faults := ParseStore(raw)
		requireOneLine(t, faults)
		total := 0
		for _, text := range texts(faults) {
			require.True(t, strings.HasPrefix(text, "numathrottle: store "), text)
			total += len(text)
		}
		require.LessOrEqual(t, total, maxText*300, "a short text has no endless faults")
		if len(faults) > 0 {
			require.Zero(t, u)
			require.Equal(t, raw != "", ShowStore(raw) != "")
			return
		}
		requireURL(t, &u)

		plain, faults := ParseStore(u.WithoutUser())
		require.Empty(t, faults)
		require.Equal(t, plain.WithoutUser(), u.WithoutUser())
		require.False(t, plain.HasUser)
		plain.HasUser, plain.Username, plain.Password = u.HasUser, u.Username, u.Password
		require.Equal(t, u, plain)
	})
}

// What stands before the last @ of a URL is never shown, wherever a secret stands
// in it.
func FuzzStoreHidesTheUser(f *testing.F) {
	for i := range schemes {
		f.Add(schemes[i].name+"://", "u:", "", "h:1,[::1]/m?db=1&replicas=2")
	}
	f.Add("redis://", ":", "@x", "h")
	f.Add("redis://h/1?a=", "", "&", "h")
	f.Add("redis://", ":p@h?", "=1", "h")
	f.Add("", "", "", "")
	f.Add("nats", "://", ":", "h")
	f.Fuzz(func(t *testing.T, scheme, before, behind, rest string) {
		raw := scheme + before + canary + behind + "@" + rest
		if strings.Contains(rest, canary) {
			return
		}
		u, faults := ParseStore(raw)
		for _, text := range texts(faults) {
			require.NotContains(t, text, canary)
		}
		require.NotContains(t, ShowStore(raw), canary)
		if len(faults) == 0 {
			require.Contains(t, u.Username+u.Password, canary)
			require.NotContains(t, u.WithoutUser(), canary)
		}
	})
}

// A file full of faults is told in a text that can be read. A reader whose time grows with the square of the faults would outlast the
// time limit of the tests.
func TestLoadOfAFileFullOfFaults(t *testing.T) {
	for name, line := range map[string]func(i int) string{
		"unknown names":  func(i int) string { return "k" + strconv.Itoa(i) + ": 1\n" },
		"a name again":   func(int) string { return "max: 1\n" },
		"values":         func(int) string { return "max: abc\n" },
		"names of lists": func(int) string { return "? []\n: 1\n" },
	} {
		t.Run(name, func(t *testing.T) {
			var content strings.Builder
			for i := 0; ; i++ {
				if next := line(i); content.Len()+len(next) <= maxFile {
					content.WriteString(next)
					continue
				}
				break
			}
			var s settings
			faults := loadContent(table, nil, "FILE", []byte(content.String()), &s)
			require.Len(t, faults, maxFaults+1)
			require.ErrorContains(t, faults[maxFaults], "has more faults")
		})
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte("store: nats://"+strings.Repeat(",", maxFile-20)+"\n"), 0o600))
	var s settings
	require.Empty(t, Load(table, []string{"NUMATHROTTLE_CONFIG=" + path}, &s), "the form of a URL is for ParseStore")
	_, faults := ParseStore(s.Store)
	require.Len(t, faults, 1)
	require.ErrorContains(t, faults[0], "is longer than 4096 bytes")
}
