package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseStore(t *testing.T) {
	for raw, want := range map[string]StoreURL{
		"":                                         {Kind: Memory},
		"memory://":                                {Kind: Memory},
		"memory://name-1":                          {Kind: Memory, Name: "name-1"},
		"static://?replicas=4":                     {Kind: Static, Replicas: 4},
		"redis://h":                                {Kind: Redis, Hosts: []string{"h:6379"}},
		"redis://h/":                               {Kind: Redis, Hosts: []string{"h:6379"}},
		"redis://h:1/3?prefix=a:b":                 {Kind: Redis, Hosts: []string{"h:1"}, DB: 3, Prefix: "a:b"},
		"redis://h?db=3&prefix=%C3%A4+%2F":         {Kind: Redis, Hosts: []string{"h:6379"}, DB: 3, Prefix: "ä /"},
		"redis://[::1]":                            {Kind: Redis, Hosts: []string{"[::1]:6379"}},
		"redis://[::1]:7":                          {Kind: Redis, Hosts: []string{"[::1]:7"}},
		"redis://10.0.0.1:7":                       {Kind: Redis, Hosts: []string{"10.0.0.1:7"}},
		"redis://u:p@h":                            {Kind: Redis, Hosts: []string{"h:6379"}, HasUser: true, Username: "u", Password: "p"},
		"redis://:p@h":                             {Kind: Redis, Hosts: []string{"h:6379"}, HasUser: true, Password: "p"},
		"redis://:%2F%3F%23%40%3A%25+p:q@h":        {Kind: Redis, Hosts: []string{"h:6379"}, HasUser: true, Password: "/?#@:%+p:q"},
		"rediss://h?serverName=s":                  {Kind: Redis, TLS: true, Hosts: []string{"h:6379"}, ServerName: "s"},
		"redis+sentinel://a,b:1/mymaster":          {Kind: RedisSentinel, Hosts: []string{"a:26379", "b:1"}, Master: "mymaster"},
		"redis+sentinel://a?master=m&db=2":         {Kind: RedisSentinel, Hosts: []string{"a:26379"}, Master: "m", DB: 2},
		"rediss+sentinel://a/m?serverName=s":       {Kind: RedisSentinel, TLS: true, Hosts: []string{"a:26379"}, Master: "m", ServerName: "s"},
		"redis+cluster://a,b:1":                    {Kind: RedisCluster, Hosts: []string{"a:6379", "b:1"}},
		"rediss+cluster://a":                       {Kind: RedisCluster, TLS: true, Hosts: []string{"a:6379"}},
		"nats://a,b:1,[::1]?bucket=b_1&replicas=3": {Kind: NATS, Hosts: []string{"a:4222", "b:1", "[::1]:4222"}, Bucket: "b_1", Replicas: 3},
		"nats://token@a":                           {Kind: NATS, Hosts: []string{"a:4222"}, HasUser: true, Username: "token"},
		"tls://u:p@a":                              {Kind: NATS, TLS: true, Hosts: []string{"a:4222"}, HasUser: true, Username: "u", Password: "p"},
	} {
		got, faults := ParseStore(raw)
		require.Empty(t, faults, raw)
		got.scheme, got.authority, got.path, got.rawParams = nil, "", "", ""
		require.Equal(t, want, got, raw)
	}
}

// A list of whole URLs, as other clients take it, is the URL with all its hosts.
func TestParseStoreLists(t *testing.T) {
	for raw, want := range map[string]string{
		"nats://a:4222,nats://b:4222":                  "nats://a:4222,b:4222",
		"nats://a,nats://b:1,nats://[::1]":             "nats://a,b:1,[::1]",
		"nats://a, nats://b,\tnats://c":                "nats://a,b,c",
		"nats://a, b, c":                               "nats://a,b,c",
		"nats://a,b,nats://c, d":                       "nats://a,b,c,d",
		"nats://a/,nats://b/?bucket=x":                 "nats://a,b/?bucket=x",
		"nats://a,nats://b?bucket=x&replicas=3":        "nats://a,b?bucket=x&replicas=3",
		"nats://u:p,w@a,nats://u:p,w@b":                "nats://u:p,w@a,b",
		"nats://u:p@a,nats://b":                        "nats://u:p@a,b",
		"nats://a,nats://u:p@b":                        "nats://u:p@a,b",
		"nats://token@a, nats://token@b":               "nats://token@a,b",
		"nats://u:p%2C%20nats%3A%2F%2Fx@a,b":           "nats://u:p%2C%20nats%3A%2F%2Fx@a,b",
		"tls://a,tls://b":                              "tls://a,b",
		"nats://a,tls://b":                             "tls://a,b",
		"tls://u:p@a,nats://u:p@b":                     "tls://u:p@a,b",
		"redis+cluster://a:1,redis+cluster://b":        "redis+cluster://a:1,b",
		"rediss+cluster://:p@a, rediss+cluster://:p@b": "rediss+cluster://:p@a,b",
		"redis+sentinel://a,redis+sentinel://b/m?db=2": "redis+sentinel://a,b/m?db=2",
	} {
		got, faults := ParseStore(raw)
		require.Empty(t, faults, raw)
		one, faults := ParseStore(want)
		require.Empty(t, faults, want)
		require.Equal(t, one, got, raw)
		require.Equal(t, one.String(), ShowStore(raw), raw)
		require.Equal(t, one.WithoutUser(), got.WithoutUser(), raw)
		if one.Kind == NATS {
			_, faults = ParseStore(ShowStore(raw))
			require.Empty(t, faults, "what is printed can be read: %s", ShowStore(raw))
		}
	}
	for raw, want := range map[string]string{
		"nats://a,redis://b":                   `has the scheme "redis" before host 2, `,
		"nats://a,b,http://c":                  `has another scheme before host 3, `,
		"redis+cluster://a,rediss+cluster://b": `has the scheme "rediss+cluster" before host 2, `,
		"redis://a,redis://b":                  "names 2 hosts, ",
		"nats://u:SECRET@a,nats://u:SECRET2@b": "has others before host 2, ",
		"nats://SECRET@a,nats://b,nats://x@c":  "has others before host 3, ",
		"nats://a?bucket=SECRET,nats://b":      "has a path or parameters behind host 1, ",
		"nats://a/SECRET,nats://b":             "has a path or parameters behind host 1, ",
		"nats://a#SECRET,nats://b":             "has a path or parameters behind host 1, ",
		"nats://a,nats://":                     "has no host (host 2), ",
		"nats://a,nats://b:SECRET":             "has a port that is not a number from 1 to 65535 (host 2), ",
		"nats://a,,nats://b":                   "has no host (host 2), ",
		"nats://a ,nats://b":                   "holds a space or a control character, ",
		"nats://u:SEC RET@a, nats://b":         "holds a space or a control character, ",
		"nats://u:SEC, RET@a":                  "holds a space or a control character, ",
		"nats://u:SEC,nats://RET@a":            "has a port that is not a number from 1 to 65535 (host 1), ",
		"memory://a,memory://b":                "has a name that is too long or holds other characters, ",
	} {
		_, faults := ParseStore(raw)
		require.NotEmpty(t, faults, raw)
		text := Join(faults).Error()
		require.Contains(t, text, want, raw)
		require.NotContains(t, text, "SEC", raw)
		require.NotContains(t, ShowStore(raw), "SEC", raw)
	}
}

func TestParseStoreFaults(t *testing.T) {
	const (
		atRedis = "allowed: redis://HOST:PORT/DB; a user name and password go before an @"
		atNATS  = "allowed: nats://HOST:PORT,...; a user name and password go before an @"
		badPort = "has a port that is not a number from 1 to 65535 (host "
	)
	const schemes = "memory://, static://, redis://, rediss://, redis+sentinel://, rediss+sentinel://, redis+cluster://, rediss+cluster://, nats://, tls://"
	for raw, want := range map[string]string{
		"SECRET":                 "is not a URL (not shown, for it may hold a secret), allowed: " + schemes,
		"SECRET@h":               "is not a URL (not shown, for it may hold a secret), allowed: " + schemes,
		"redis:/SECRET@h":        "is not a URL (not shown, for it may hold a secret), allowed: " + schemes,
		"://SECRET":              "is not a URL (not shown, for it may hold a secret), allowed: " + schemes,
		"SECRET SECRET://h":      "is not a URL (not shown, for it may hold a secret), allowed: " + schemes,
		"Redis://:SECRET@h":      `has the scheme "Redis"; did you mean redis?, allowed: ` + schemes,
		"redis+sentinal://h":     `has the scheme "redis+sentinal"; did you mean redis+sentinel?, allowed: ` + schemes,
		"http://u:SECRET@h":      `has the scheme "http", allowed: ` + schemes,
		"redis://:SECRET @h":     "holds a space or a control character, allowed: spaces and control characters percent-encoded",
		"redis://h\n":            "holds a space or a control character, allowed: spaces and control characters percent-encoded",
		"redis://h/#SECRET":      "has a fragment, allowed: none; write %23 for the character #",
		"redis://:SEC/RET@h":     "has an @ in the wrong place, allowed: user:password@host, each of / ? # @ : % in user and password percent-encoded",
		"redis://:SEC?RET@h":     "has an @ in the wrong place, allowed: user:password@host, each of / ? # @ : % in user and password percent-encoded",
		"redis://:SEC#RET@h":     "has an @ in the wrong place, allowed: user:password@host, each of / ? # @ : % in user and password percent-encoded",
		"redis://:SEC@RET@h":     "has an @ in the wrong place, allowed: user:password@host, each of / ? # @ : % in user and password percent-encoded",
		"redis://h/0?x=SECRET@h": "has an @ in the wrong place, allowed: user:password@host, each of / ? # @ : % in user and password percent-encoded",
		"redis://:%SECRET@h":     "has a user name or password with a broken percent-encoding, allowed: % written as %25",
		"redis://@h":             "has an @ with nothing before it, allowed: user:password@host",
		"nats://:@h":             "has an @ with nothing before it, allowed: user:password@host",
		"redis://SECRET@h":       "has a user name without a password, allowed: user:password@host or :password@host",
		"redis://default:SECRET": badPort + "1), " + atRedis,
		"redis://h:0":            badPort + "1), " + atRedis,
		"redis://h:65536":        badPort + "1), " + atRedis,
		"redis://h:":             badPort + "1), " + atRedis,
		"redis://":               "has no host (host 1), " + atRedis,
		"redis:///1":             "has no host (host 1), " + atRedis,
		"redis://:1":             "has no host (host 1), " + atRedis,
		"redis://h!SECRET":       "has a host with characters that no host name has (host 1), " + atRedis,
		"redis://[SECRET]:1":     "has brackets around what is no IPv6 address (host 1), " + atRedis,
		"redis://[::1:1":         "has brackets around what is no IPv6 address (host 1), " + atRedis,
		"redis://::1":            "has a host with characters that no host name has (host 1), " + atRedis,
		"redis://a,b":            "names 2 hosts, allowed: one; for several use redis+sentinel:// or redis+cluster://",
		"nats://a,,b":            "has no host (host 2), " + atNATS,
		"nats://a,b:x,c:y": badPort + "2), " + atNATS + "\n" +
			badPort + "3), " + atNATS,
		"memory://u:SECRET@h":             "has a user name or password, which memory:// does not take, allowed: none",
		"memory://a/b":                    "has a path, which memory:// does not, allowed: memory://NAME",
		"memory://a!":                     "has a name that is too long or holds other characters, allowed: up to 64 letters, digits, -, _ and .",
		"memory://?name=x":                "has the unknown parameter name, allowed: none; secrets have settings of their own",
		"static://":                       "lacks the parameter replicas, allowed: static://?replicas=N",
		"static://h?replicas=1":           "names a host, which static:// does not have, allowed: static://?replicas=N",
		"static://4":                      "names a host, which static:// does not have, allowed: static://?replicas=N",
		"static://?replicas=0":            "has the parameter replicas with a value that is not allowed, allowed: 1 to 1000000",
		"static://?replicas=x":            "has the parameter replicas with a value that is not allowed, allowed: 1 to 1000000",
		"static://?replicas=":             "has the parameter replicas with a value that is not allowed, allowed: 1 to 1000000",
		"static://?replicas=1000001":      "has the parameter replicas with a value that is not allowed, allowed: 1 to 1000000",
		"static://?replicas=1&replicas=2": "has the parameter replicas twice",
		"redis://h/x":                     "has a path that cannot be the parameter db, allowed: 0 to 1000000",
		"redis://h/1/2":                   "has a path that cannot be the parameter db, allowed: 0 to 1000000",
		"redis://h/1?db=1":                "has the parameter db twice",
		"redis://h?password=SECRET":       "has the unknown parameter password, allowed: db, prefix, durable; secrets have settings of their own",
		"redis://h?SECRET":                "has the unknown parameter (not shown), allowed: db, prefix, durable; secrets have settings of their own",
		"redis://h?bucket=b":              "has the unknown parameter bucket, allowed: db, prefix, durable; secrets have settings of their own",
		"redis://h?serverName=s":          "has the unknown parameter serverName, allowed: db, prefix, durable; secrets have settings of their own",
		"redis://h?prefix=%SECRET":        "has the parameter prefix with a value that is not allowed, allowed: 1 to 128 bytes without braces",
		"redis://h?prefix={SECRET}":       "has the parameter prefix with a value that is not allowed, allowed: 1 to 128 bytes without braces",
		"redis+sentinel://h":              "lacks the parameter master, allowed: redis+sentinel://HOST:PORT,.../MASTER",
		"redis+sentinel://h/a/b":          "has a path that cannot be the parameter master, allowed: 1 to 256 letters, digits, `-`, `_` and `.`",
		"redis+cluster://h/1":             "has a path, which redis+cluster:// does not, allowed: redis+cluster://HOST:PORT,...",
		"nats://h?bucket=a.b":             "has the parameter bucket with a value that is not allowed, allowed: 1 to 128 letters, digits, `-` and `_`",
		"nats://h?replicas=6&a=1&bucket=": "has the parameter replicas with a value that is not allowed, allowed: 1 to 5\n" +
			"has the unknown parameter a, allowed: bucket, replicas, serverName, handshakeFirst; secrets have settings of their own\n" +
			"has the parameter bucket with a value that is not allowed, allowed: 1 to 128 letters, digits, `-` and `_`",
	} {
		u, faults := ParseStore(raw)
		require.Zero(t, u, raw)
		var lines []string
		for _, fault := range faults {
			line := fault.Error()
			require.NotContains(t, line, "SECRET")
			require.NotContains(t, line, "SEC")
			require.NotContains(t, line, "RET")
			line, found := strings.CutPrefix(line, "numathrottle: store ")
			require.True(t, found, line)
			lines = append(lines, line)
		}
		require.Equal(t, want, strings.Join(lines, "\n"), raw)
		require.Equal(t, "(not a store URL, not shown)", ShowStore(raw))
	}
}

func TestShowStore(t *testing.T) {
	for raw, want := range map[string]string{
		"":                                "",
		"memory://":                       "memory://",
		"redis://h/3?prefix=p":            "redis://h/3?prefix=p",
		"redis://user:SECRET@h/3":         "redis://***@h/3",
		"nats://SECRET@a:1,b":             "nats://***@a:1,b",
		"redis+sentinel://:SECRET@a,b/m?": "redis+sentinel://***@a,b/m",
	} {
		require.Equal(t, want, ShowStore(raw))
	}
}
