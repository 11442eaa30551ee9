package config

import (
	"slices"
	"strings"
)

// Kind is a kind of store.
type Kind string

// The kinds of stores.
const (
	Memory        Kind = "memory"
	Static        Kind = "static"
	Redis         Kind = "redis"
	RedisSentinel Kind = "redis+sentinel"
	RedisCluster  Kind = "redis+cluster"
	NATS          Kind = "nats"
)

// IsRedis reports whether the store is any form of Redis.
func (k Kind) IsRedis() bool { return k == Redis || k == RedisSentinel || k == RedisCluster }

// A hostRule is the allowed number of hosts in a URL.
type hostRule int

const (
	noHost hostRule = iota
	hostIsName
	oneHost
	manyHosts
)

// A scheme describes the store URLs of one scheme.
type scheme struct {
	name  string
	kind  Kind
	tls   bool
	hosts hostRule
	port  string // default
	// path names the parameter that the path of the URL replaces.
	path   string
	params []param
	// form and doc are for the reference.
	form, doc string
}

// A param is one parameter of a store URL.
type param struct {
	name, allowed, byDefault, doc string
	required                      bool
	set                           func(u *StoreURL, text string) bool // false: not allowed
}

// numberParam is an integer parameter within a range.
func numberParam(low, high int, at func(*StoreURL) *int) func(*StoreURL, string) bool {
	return func(u *StoreURL, text string) bool {
		n, ok := WholeNumber(text)
		if !ok || n < low || n > high {
			return false
		}
		*at(u) = n
		return true
	}
}

// textParam is a parameter of 1 to longest bytes that all satisfy ok.
func textParam(longest int, ok func(r rune) bool, at func(*StoreURL) *string) func(*StoreURL, string) bool {
	return func(u *StoreURL, text string) bool {
		if text == "" || len(text) > longest || !isLine(text) ||
			strings.ContainsFunc(text, func(r rune) bool { return !ok(r) }) {
			return false
		}
		*at(u) = text
		return true
	}
}

func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r)
}

var (
	replicasParam = param{
		name: "replicas", required: true, allowed: "1 to 1000000", byDefault: "none: it is required",
		doc: "`static`: the number of pods that divide the limit",
		set: numberParam(1, 1_000_000, func(u *StoreURL) *int { return &u.Replicas }),
	}
	dbParam = param{
		name: "db", allowed: "0 to 1000000", byDefault: "0", doc: "the number of the database; also as the path `/DB`",
		set: numberParam(0, 1_000_000, func(u *StoreURL) *int { return &u.DB }),
	}
	masterParam = param{
		name: "master", required: true, allowed: "1 to 256 letters, digits, `-`, `_` and `.`", byDefault: "none: it is required",
		doc: "the name that the sentinels know the master by; also as the path `/MASTER`",
		set: textParam(256, isNameRune, func(u *StoreURL) *string { return &u.Master }),
	}
	prefixParam = param{
		name: "prefix", allowed: "1 to 128 bytes without braces", byDefault: "`numathrottle`",
		doc: "what the names of all keys begin with; pools with different prefixes know nothing of each other",
		set: textParam(128, func(r rune) bool { return r != '{' && r != '}' }, func(u *StoreURL) *string { return &u.Prefix }),
	}
	durableParam = param{
		name: "durable", allowed: "true or false", byDefault: "`false`",
		doc: "the server forgets nothing when it is killed (`appendfsync always`, and no replica that could take over), so that a restart " +
			"freezes no pool; every pod must say the same",
		set: func(u *StoreURL, text string) bool {
			u.Durable = text == "true"
			return u.Durable || text == "false"
		},
	}
	bucketParam = param{
		name: "bucket", allowed: "1 to 128 letters, digits, `-` and `_`", byDefault: "`numathrottle`",
		doc: "the JetStream KV bucket; it is made if there is none",
		set: textParam(128, func(r rune) bool { return isNameRune(r) && r != '.' }, func(u *StoreURL) *string { return &u.Bucket }),
	}
	copiesParam = param{
		name: "replicas", allowed: "1 to 5", byDefault: "3 where the servers are a cluster, else 1",
		doc: "NATS: how many servers keep the bucket, if it has to be made",
		set: numberParam(1, 5, func(u *StoreURL) *int { return &u.Replicas }),
	}
	handshakeFirstParam = param{
		name: "handshakeFirst", allowed: "true or false", byDefault: "`false`",
		doc: "NATS: TLS comes before anything else, for servers whose `tls` has `handshake_first`; `auto` and delays below a second there need it not",
		set: func(u *StoreURL, text string) bool {
			u.HandshakeFirst = text == "true"
			return u.HandshakeFirst || text == "false"
		},
	}
	serverNameParam = param{
		name: "serverName", allowed: "a host name", byDefault: "the host connected to",
		doc: "the name that the server's certificate must hold",
		set: textParam(253, isNameRune, func(u *StoreURL) *string { return &u.ServerName }),
	}
)

// schemes lists all schemes, in the order of the reference.
var schemes = []scheme{
	{
		name: "memory", kind: Memory, hosts: hostIsName,
		form: "memory://NAME", doc: "in this process alone; NAME, which may be left out, tells several stores of a process apart",
	},
	{
		name: "static", kind: Static, params: []param{replicasParam},
		form: "static://?replicas=N", doc: "none: every pod uses one N-th of the limit",
	},
	{
		name: "redis", kind: Redis, hosts: oneHost, port: "6379", path: "db", params: []param{dbParam, prefixParam, durableParam},
		form: "redis://HOST:PORT/DB", doc: "one Redis server, port 6379 by default",
	},
	{
		name: "rediss", kind: Redis, tls: true, hosts: oneHost, port: "6379", path: "db", params: []param{dbParam, prefixParam, durableParam, serverNameParam},
		form: "rediss://HOST:PORT/DB", doc: "the same over TLS",
	},
	{
		name: "redis+sentinel", kind: RedisSentinel, hosts: manyHosts, port: "26379", path: "master", params: []param{masterParam, dbParam1, prefixParam},
		form: "redis+sentinel://HOST:PORT,.../MASTER", doc: "Redis behind Sentinel; the hosts are the sentinels, port 26379 by default",
	},
	{
		name: "rediss+sentinel", kind: RedisSentinel, tls: true, hosts: manyHosts, port: "26379", path: "master",
		params: []param{masterParam, dbParam1, prefixParam, serverNameParam},
		form:   "rediss+sentinel://HOST:PORT,.../MASTER", doc: "the same over TLS, to the sentinels too",
	},
	{
		name: "redis+cluster", kind: RedisCluster, hosts: manyHosts, port: "6379", params: []param{prefixParam},
		form: "redis+cluster://HOST:PORT,...", doc: "Redis Cluster; the hosts are some of its nodes, port 6379 by default",
	},
	{
		name: "rediss+cluster", kind: RedisCluster, tls: true, hosts: manyHosts, port: "6379", params: []param{prefixParam, serverNameParam},
		form: "rediss+cluster://HOST:PORT,...", doc: "the same over TLS",
	},
	{
		name: "nats", kind: NATS, hosts: manyHosts, port: "4222", params: []param{bucketParam, copiesParam, serverNameParam, handshakeFirstParam},
		form: "nats://HOST:PORT,...",
		doc: "NATS JetStream, port 4222 by default; a list of URLs, `nats://a,nats://b`, will do; " +
			"over TLS when the server asks for it, or when a certificate file, `serverName` or `handshakeFirst` is set",
	},
	{
		name: "tls", kind: NATS, tls: true, hosts: manyHosts, port: "4222", params: []param{bucketParam, copiesParam, serverNameParam, handshakeFirstParam},
		form: "tls://HOST:PORT,...", doc: "the same over TLS only",
	},
}

// dbParam1 is dbParam for schemes whose path has another meaning.
var dbParam1 = param{
	name: dbParam.name, allowed: dbParam.allowed, byDefault: dbParam.byDefault, doc: "Sentinel: the number of the database", set: dbParam.set,
}

func findScheme(name string) *scheme {
	i := slices.IndexFunc(schemes, func(s scheme) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	return &schemes[i]
}

func (s *scheme) param(name string) *param {
	i := slices.IndexFunc(s.params, func(p param) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return &s.params[i]
}

func schemeNames() []string {
	names := make([]string, len(schemes))
	for i := range schemes {
		names[i] = schemes[i].name
	}
	return names
}

func (s *scheme) paramNames() []string {
	names := make([]string, len(s.params))
	for i := range s.params {
		names[i] = s.params[i].name
	}
	return names
}
