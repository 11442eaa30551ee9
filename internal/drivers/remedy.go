package drivers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A RemedyError is an error of a store with its remedy. Its text has no secret.
type RemedyError struct {
	// Says names the problem and the setting that fixes it, in one sentence.
	Says string

	err error // without secrets
}

// Error returns the remedy and the error.
func (e *RemedyError) Error() string { return e.Says + ": " + e.err.Error() }

// Remedy returns the remedy.
func (e *RemedyError) Remedy() string { return e.Says }

// Unwrap returns the error without secrets.
func (e *RemedyError) Unwrap() error { return e.err }

// tell returns an error of the store without secrets, and with a remedy if there is one.
func (g *Guarded) tell(err error) error {
	clean := g.secrets().Clean(err)
	if err == nil || errors.Is(err, driver.ErrNoPool) {
		g.answered.Store(true)
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return clean
	}
	if says := g.Of.remedy(err, g.answered.Load()); says != "" {
		return &RemedyError{says, clean}
	}
	return clean
}

// A sign is a pattern in an error's text that indicates a problem of the store.
type sign struct {
	of     func(k config.Kind) bool // nil: of any
	text   *regexp.Regexp
	remedy func(r *Request) string
}

// What a driver found out about a server that does not answer.
var (
	ErrRedis          = errors.New("the server answers as Redis does")
	ErrHandshakeFirst = errors.New("the server waits for a TLS handshake before it greets")
)

func isNATS(k config.Kind) bool { return k == config.NATS }

var (
	storeVariable = config.Variable("store")

	anAddress  = regexp.MustCompile(`(?:dial tcp |->)([0-9A-Za-z.:\[\]-]+:[0-9]+): `)
	unresolved = regexp.MustCompile(`lookup ([^ :]+)`)
)

// signs are read from first to last.
var signs = []sign{
	{config.Kind.IsRedis, regexp.MustCompile(`can't parse reply|invalid reply: "INFO |"INFO `), natsInstead},
	{isNATS, regexp.MustCompile(`secure connection not available`), plainInstead},
	{isNATS, regexp.MustCompile(ErrRedis.Error()), redisInstead},
	{isNATS, regexp.MustCompile(ErrHandshakeFirst.Error()), func(r *Request) string {
		return r.where() + " wants TLS before anything else (handshake_first): set the parameter handshakeFirst=true of " + storeVariable
	}},
	{config.Kind.IsRedis, regexp.MustCompile(`NOAUTH|Authentication required`), (*Request).noLogin},
	{config.Kind.IsRedis, regexp.MustCompile(`WRONGPASS|invalid password`), (*Request).wrongLogin},
	{config.Kind.IsRedis, regexp.MustCompile(`NOPERM|ACL failure|lacks a permission`), func(*Request) string {
		return "the user of the store may not do all that is needed: give it the rights that docs/stores.md lists"
	}},
	{config.Kind.IsRedis, regexp.MustCompile(`cluster support disabled`), func(r *Request) string {
		return r.where() + " is no Redis Cluster: set " + storeVariable + " to " + r.scheme("redis://")
	}},
	{config.Kind.IsRedis, regexp.MustCompile(`\bMOVED [0-9]+ `), func(r *Request) string {
		return r.where() + " belongs to a Redis Cluster: set " + storeVariable + " to " + r.scheme("redis+cluster://")
	}},
	{config.Kind.IsRedis, regexp.MustCompile(`READONLY`), func(r *Request) string {
		return r.where() + " is a replica: set " + storeVariable + " to the master, or to redis+sentinel://"
	}},
	{config.Kind.IsRedis, regexp.MustCompile(`\bOOM\b`), func(r *Request) string {
		return r.where() + " has no memory left: raise its maxmemory"
	}},
	{config.Kind.IsRedis, regexp.MustCompile(`MISCONF`), func(r *Request) string {
		return r.where() + " cannot save to its disk, and takes no writes: see its log, and give its disk room"
	}},
	{config.Kind.IsRedis, regexp.MustCompile(`NOREPLICAS`), func(r *Request) string {
		return r.where() + " has too few replicas in reach (min-replicas-to-write), and takes no writes: bring them back"
	}},
	{config.Kind.IsRedis, regexp.MustCompile(`\bLOADING\b`), func(r *Request) string {
		return r.where() + " still loads its data: wait, it answers when it has"
	}},
	{config.Kind.IsRedis, regexp.MustCompile(`CLUSTERDOWN`), func(r *Request) string {
		return "the Redis Cluster at " + r.where() + " does not serve all slots: see its CLUSTER INFO, and bring its nodes back"
	}},
	{config.Kind.IsRedis, regexp.MustCompile(`MASTERDOWN`), func(r *Request) string {
		return r.where() + " is a replica: set " + storeVariable + " to the master, or to redis+sentinel://"
	}},
	{config.Kind.IsRedis, regexp.MustCompile(`DB index is out of range|SELECT is not allowed in cluster mode`), func(r *Request) string {
		return r.where() + " has no database of that number: correct the database in " + storeVariable
	}},
	{config.Kind.IsRedis, regexp.MustCompile(`max number of clients`), func(r *Request) string {
		return r.where() + " has as many clients as it takes: raise its maxclients"
	}},
	{isNATS, regexp.MustCompile(`(?i)permissions violation`), func(*Request) string {
		return "the user of the store may not do all that is needed: give it the permissions that docs/stores.md names"
	}},
	{isNATS, regexp.MustCompile(`sealed`), func(r *Request) string {
		return "the bucket takes no writes any more, for it is sealed: set the parameter bucket of " + storeVariable + " to another"
	}},
	{isNATS, regexp.MustCompile(`insufficient (storage|memory|resources)|maximum bytes exceeded|no suitable peers`), func(*Request) string {
		return "the NATS servers have no room for the bucket: raise the limits of JetStream, or those of the account"
	}},
	{isNATS, regexp.MustCompile(`(?i)authorization violation|authentication (expired|revoked|timeout)`), func(r *Request) string {
		if c := r.Credentials; c.HasLogin() || c.Token.IsSet() || c.CredsFile != "" || c.NkeyFile != "" {
			return r.wrongLogin()
		}
		return r.noLogin()
	}},
	{isNATS, regexp.MustCompile(`no servers available`), func(r *Request) string {
		return "no server answers at " + r.where() + ": start the store there, or correct " + storeVariable
	}},
	{isNATS, regexp.MustCompile(`(?i)jetstream not enabled|no responders`), func(*Request) string {
		return "the NATS server has no JetStream: start it with jetstream enabled (nats-server -js), or enable it for the account"
	}},
}

// losses are signs of a store that has answered before: it is the right one.
var losses = []sign{
	{nil, regexp.MustCompile(`deadline exceeded|i/o timeout|nats: timeout|not connected to NATS|\bEOF\b|connection reset`), func(r *Request) string {
		return r.where() + " has answered, and does not now: see whether it runs and can be reached from here"
	}},
}

// silences are signs of a store that has never answered; once it has, they mean something else.
var silences = []sign{
	{isNATS, regexp.MustCompile(`expected 'INFO'|nats: protocol error|nats: unknown protocol|EOF`), redisInstead},
	{config.Kind.IsRedis, regexp.MustCompile(`\bEOF\b|connection reset`), func(r *Request) string {
		if r.URL.TLS {
			return ""
		}
		return r.where() + " closes plain connections: if it talks TLS, set " + storeVariable + " to " + tlsScheme(r.URL.Kind)
	}},
	{nil, regexp.MustCompile(`deadline exceeded|i/o timeout|still connecting|not connected to NATS`), func(r *Request) string {
		says := r.where() + " does not answer: see whether it runs and can be reached from here, or correct " + storeVariable
		if r.URL.TLS && r.URL.Kind.IsRedis() {
			says += "; if it does not talk TLS, set that to " + r.plainScheme()
		}
		return says
	}},
}

// remedy returns the remedy for an error; empty: unknown. The error may contain secrets, the remedy does not.
func (r *Request) remedy(err error, answered bool) string {
	if errors.Is(err, driver.ErrContention) || errors.Is(err, driver.ErrOverdue) {
		return "" // it is busy
	}
	if says := r.connecting(err); says != "" {
		return says
	}
	text := err.Error()
	late := silences
	if answered {
		late = losses
	}
	for _, s := range slices.Concat(signs, late) {
		if (s.of == nil || s.of(r.URL.Kind)) && s.text.MatchString(text) {
			return s.remedy(r)
		}
	}
	return ""
}

// connecting is remedy for failures to connect.
func (r *Request) connecting(err error) string {
	text := err.Error()
	if m := unresolved.FindStringSubmatch(text); m != nil && strings.Contains(text, "no such host") {
		return m[1] + " is no host name that is known here: correct " + storeVariable
	}
	if errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(text, "connection refused") {
		at := r.where()
		if m := anAddress.FindStringSubmatch(text); m != nil {
			at = m[1]
		}
		return "nothing listens at " + at + ": start the store there, or correct " + storeVariable
	}
	return r.encrypting(err)
}

// encrypting is remedy for failures to encrypt a connection.
func (r *Request) encrypting(err error) string {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		if string(record.RecordHeader[:]) == "INFO " && r.URL.Kind.IsRedis() {
			return natsInstead(r)
		}
		if r.URL.HandshakeFirst {
			return r.where() + " greets before TLS: take the parameter handshakeFirst out of " + storeVariable
		}
		return plainInstead(r)
	}
	text := err.Error()
	switch {
	case errors.As(err, &authority), strings.Contains(text, "signed by unknown authority"):
		return "the certificate of the store is not one of a known authority: set " + config.Variable("storeCAFile") + " to the authority's, in PEM"
	case errors.As(err, &name), strings.Contains(text, "certificate is valid for"):
		return "the certificate of the store is for another name: set the parameter serverName of " + storeVariable + " to the name that it holds"
	case strings.Contains(text, "certificate required"), strings.Contains(text, "tls: bad certificate"):
		return "the store wants a certificate of this client that it knows: set " + config.Variable("storeCertFile") + " and " + config.Variable("storeKeyFile")
	}
	return ""
}

func natsInstead(r *Request) string {
	return "a NATS server listens at " + r.where() + ": set " + storeVariable + " to nats://"
}

func redisInstead(r *Request) string {
	return r.where() + " does not greet as a NATS server does: if it is a Redis server, set " + storeVariable + " to " + r.scheme("redis://")
}

func plainInstead(r *Request) string {
	return r.where() + " does not talk TLS: set " + storeVariable + " to " + r.plainScheme()
}

// where names the servers.
func (r *Request) where() string { return strings.Join(r.URL.Hosts, ", ") }

// scheme returns a scheme of Redis, with TLS if the URL has it.
func (r *Request) scheme(plain string) string {
	if r.URL.TLS {
		return strings.Replace(plain, "redis", "rediss", 1)
	}
	return plain
}

func (r *Request) plainScheme() string {
	if r.URL.Kind == config.NATS {
		return "nats://"
	}
	return string(r.URL.Kind) + "://"
}

func tlsScheme(k config.Kind) string { return strings.Replace(string(k), "redis", "rediss", 1) + "://" }

// noLogin is the remedy if the store requires a login and there is none.
func (r *Request) noLogin() string {
	if r.URL.Kind == config.NATS {
		return "the store wants a login, and none is set: set " + config.Variable("storeUsername") + " and " + config.Variable("storePassword") + ", or " +
			config.Variable("storeToken") + ", " + config.Variable("storeCredsFile") + " or " + config.Variable("storeNkeyFile")
	}
	key := "storePassword"
	if r.URL.Kind == config.RedisSentinel && r.Credentials.HasLogin() {
		key = "storeSentinelPassword"
	}
	return "the store wants a password, and none is set: set " + config.Variable(key) + " or " + config.Variable(key+"File")
}

// wrongLogin is the remedy if the store rejects the login.
func (r *Request) wrongLogin() string {
	c := r.Credentials
	switch {
	case c.Token.IsSet():
		return "the store rejects the token (" + r.from("storeToken", c.Token) + ")"
	case c.CredsFile != "":
		return "the store rejects the credentials (" + config.Variable("storeCredsFile") + ", " + c.CredsFile + ")"
	case c.NkeyFile != "":
		return "the store rejects the nkey (" + config.Variable("storeNkeyFile") + ", " + c.NkeyFile + ")"
	}
	what, where := "password", r.from("storePassword", c.Password)
	if c.Username != "" {
		what = "user or the password"
		if !c.InURL {
			where = config.Variable("storeUsername") + ", " + where
		}
	}
	if r.URL.Kind == config.RedisSentinel && c.SentinelPassword.IsSet() {
		where += ", or those of Sentinel: " + config.Variable("storeSentinelPassword")
	}
	return "the store rejects the " + what + " (" + where + ")"
}

// from names the source of a secret.
func (r *Request) from(key string, s Source) string {
	switch {
	case r.Credentials.InURL && key != "storeSentinelPassword":
		return storeVariable
	case s.Path != "":
		return config.Variable(key+"File") + ", " + s.Path
	}
	return config.Variable(key)
}
