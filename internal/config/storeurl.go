package config

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
)

// DefaultStore is the store if none is named.
const DefaultStore = "memory://"

// A StoreURL is a parsed store URL.
type StoreURL struct { //nolint:recvcheck // it is printed as a value, too, and filled in by pointer
	Kind Kind
	// TLS means that the connection must be encrypted.
	TLS bool
	// Name distinguishes memory stores.
	Name string
	// Hosts are the servers, each host:port.
	Hosts []string
	// The parts before the @. A URL may name a user without a password; for NATS
	// that is a token.
	Username, Password string
	HasUser            bool
	// Parameters; zero when not given.
	Replicas, DB               int
	Master, Prefix, Bucket     string
	Durable, HandshakeFirst    bool
	ServerName                 string
	scheme                     *scheme
	authority, path, rawParams string
}

// allowedStore lists the schemes of store URLs.
func allowedStore() string { return strings.Join(schemeNames(), "://, ") + "://" }

func storeFault(allowed, problem string, args ...any) error {
	return &FieldError{Field: "store", Problem: fmt.Sprintf(problem, args...), Allowed: allowed}
}

// ParseStore parses a store URL; an empty one is DefaultStore. It returns a *FieldError for each fault. No fault shows a possible secret:
// url.Parse is not used because its errors repeat the URL.
func ParseStore(raw string) (StoreURL, []error) {
	u, fault := splitStore(raw)
	if fault != nil {
		return StoreURL{}, []error{fault}
	}
	faults := u.takeUser()
	faults = append(faults, u.takeHosts()...)
	if len(faults) == 0 {
		// With a fault so far, the rest may be a part of a password.
		faults = append(u.takePath(), u.takeParams()...)
	}
	if len(faults) > 0 {
		return StoreURL{}, faults
	}
	return u, nil
}

// splitStore finds the scheme and splits the rest.
func splitStore(raw string) (StoreURL, error) {
	if raw == "" {
		raw = DefaultStore
	}
	if len(raw) > maxText {
		return StoreURL{}, storeFault("", "is longer than %d bytes", maxText)
	}
	name, rest, found := strings.Cut(raw, "://")
	if !found || name == "" || len(name) > 20 || strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) && r != '+' }) {
		return StoreURL{}, storeFault(allowedStore(), "is not a URL (not shown, for it may hold a secret)%s", schemeHint(raw))
	}
	s := findScheme(name)
	if s == nil {
		return StoreURL{}, storeFault(allowedStore(), "has the scheme %s%s", quote(name), didYouMean(name, schemeNames()))
	}
	name, rest, fault := joinList(name, rest)
	if fault != nil {
		return StoreURL{}, fault
	}
	s = findScheme(name)
	if strings.ContainsFunc(rest, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return StoreURL{}, storeFault("spaces and control characters percent-encoded", "holds a space or a control character")
	}
	u := StoreURL{Kind: s.kind, TLS: s.tls, scheme: s}
	// Everything before the last @ is a secret, wherever that @ is.
	user, rest, hasUser := cutLast(rest, "@")
	u.HasUser, u.Username = hasUser, user
	if strings.Contains(rest, "#") {
		return StoreURL{}, storeFault("none; write %23 for the character #", "has a fragment")
	}
	rest, u.rawParams, _ = strings.Cut(rest, "?")
	u.authority, u.path, _ = strings.Cut(rest, "/")
	return u, nil
}

// cutLast splits at the last separator; without one everything comes after.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return "", text, false
	}
	return text[:i], text[i+len(separator):], true
}

// takeUser splits the part before the @.
func (u *StoreURL) takeUser() []error {
	if !u.HasUser {
		return nil
	}
	raw := u.Username
	u.Username = ""
	if u.scheme.hosts == noHost || u.scheme.hosts == hostIsName {
		return []error{storeFault("none", "has a user name or password, which %s:// does not take", u.scheme.name)}
	}
	if strings.ContainsAny(raw, "/?#@") {
		return []error{storeFault("user:password@host, each of / ? # @ : % in user and password percent-encoded", "has an @ in the wrong place")}
	}
	name, password, _ := strings.Cut(raw, ":")
	var err1, err2 error
	u.Username, err1 = url.PathUnescape(name)
	u.Password, err2 = url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return []error{storeFault("% written as %25", "has a user name or password with a broken percent-encoding")}
	}
	if faults := u.cleanUser(); len(faults) > 0 {
		return faults
	}
	switch {
	case u.Username == "" && u.Password == "":
		return []error{storeFault("user:password@host", "has an @ with nothing before it")}
	case u.Kind.IsRedis() && u.Password == "":
		return []error{storeFault("user:password@host or :password@host", "has a user name without a password")}
	}
	return nil
}

// cleanUser applies the rule for secrets to user and password, because either may be one.
func (u *StoreURL) cleanUser() (faults []error) {
	for _, part := range []struct {
		name string
		text *string
	}{{"user name", &u.Username}, {"password", &u.Password}} {
		clean, problem := CleanSecret(*part.text)
		if problem != "" {
			faults = append(faults, storeFault(AllowedSecret, "has a %s that %s, once it is percent-decoded", part.name, problem))
		}
		*part.text = clean
	}
	return faults
}

// takeHosts checks the hosts and adds their ports.
func (u *StoreURL) takeHosts() []error {
	switch u.scheme.hosts {
	case noHost:
		if u.authority != "" {
			return []error{storeFault(u.scheme.form, "names a host, which %s:// does not have", u.scheme.name)}
		}
		return nil
	case hostIsName:
		if len(u.authority) > 64 || strings.ContainsFunc(u.authority, func(r rune) bool { return !isNameRune(r) }) {
			return []error{storeFault("up to 64 letters, digits, -, _ and .", "has a name that is too long or holds other characters")}
		}
		u.Name = u.authority
		return nil
	case oneHost, manyHosts:
	}
	hosts := strings.Split(u.authority, ",")
	if u.scheme.hosts == oneHost && len(hosts) > 1 {
		return []error{storeFault("one; for several use redis+sentinel:// or redis+cluster://", "names %d hosts", len(hosts))}
	}
	var faults []error
	for i, text := range hosts {
		host, problem := hostPort(text, u.scheme.port)
		if problem != "" {
			faults = append(faults, storeFault(u.scheme.form+"; a user name and password go before an @", "%s (host %d)", problem, i+1))
		}
		u.Hosts = append(u.Hosts, host)
	}
	return faults
}

// hostPort checks one host and adds the port if it has none.
func hostPort(text, port string) (address, problem string) {
	host := text
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
		host, port = text[:i], text[i+1:]
	}
	if n, ok := WholeNumber(port); !ok || n < 1 || n > 65535 {
		return "", "has a port that is not a number from 1 to 65535"
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		if ip := net.ParseIP(inner); !closed || ip == nil {
			return "", "has brackets around what is no IPv6 address"
		}
		return net.JoinHostPort(inner, port), ""
	}
	switch {
	case host == "":
		return "", "has no host"
	case len(host) > 253 || strings.ContainsFunc(host, func(r rune) bool { return !isNameRune(r) }):
		return "", "has a host with characters that no host name has"
	}
	return net.JoinHostPort(host, port), ""
}

// takePath reads the path as the parameter that it replaces.
func (u *StoreURL) takePath() []error {
	if u.path == "" {
		return nil
	}
	if u.scheme.path == "" {
		return []error{storeFault(u.scheme.form, "has a path, which %s:// does not", u.scheme.name)}
	}
	p := u.scheme.param(u.scheme.path)
	if text, err := url.PathUnescape(u.path); err != nil || !p.set(u, text) {
		return []error{storeFault(p.allowed, "has a path that cannot be the parameter %s", p.name)}
	}
	return nil
}

// takeParams reads the parameters in order.
func (u *StoreURL) takeParams() []error {
	var seen []string
	var faults []error
	if u.path != "" {
		seen = append(seen, u.scheme.path)
	}
	for pair := range strings.SplitSeq(u.rawParams, "&") {
		if pair == "" {
			continue
		}
		name, text, hasValue := strings.Cut(pair, "=")
		p := u.scheme.param(name)
		switch {
		case p == nil:
			faults = append(faults, u.unknownParam(name, hasValue))
		case slices.Contains(seen, name):
			faults = append(faults, storeFault("", "has the parameter %s twice", name))
		default:
			seen = append(seen, name)
			if value, err := url.QueryUnescape(text); err != nil || !p.set(u, value) {
				faults = append(faults, storeFault(p.allowed, "has the parameter %s with a value that is not allowed", name))
			}
		}
	}
	for i := range u.scheme.params {
		if p := &u.scheme.params[i]; p.required && !slices.Contains(seen, p.name) {
			faults = append(faults, storeFault(u.scheme.form, "lacks the parameter %s", p.name))
		}
	}
	return faults
}

// unknownParam returns the fault for a parameter that the scheme does not have.
func (u *StoreURL) unknownParam(name string, hasValue bool) error {
	allowed := "none"
	if len(u.scheme.params) > 0 {
		allowed = strings.Join(u.scheme.paramNames(), ", ")
	}
	shown := " (not shown)"
	if hasValue && len(name) <= 40 && !strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) }) {
		shown = " " + name
	}
	return storeFault(allowed+"; secrets have settings of their own", "has the unknown parameter%s", shown)
}

// ShowStore returns the printable form of a store URL: without the part before an @, and empty for an invalid URL.
func ShowStore(raw string) string {
	if raw == "" {
		return ""
	}
	u, faults := ParseStore(raw)
	if len(faults) > 0 {
		return "(not a store URL, not shown)"
	}
	return u.String()
}

// WithoutUser returns the URL without the part before an @.
func (u *StoreURL) WithoutUser() string { return u.text("") }

// String returns the printable URL.
func (u StoreURL) String() string {
	switch {
	case u.scheme == nil:
		return ""
	case u.HasUser:
		return u.text("***@")
	default:
		return u.text("")
	}
}

// Format prints String for every verb, so that nothing prints the fields.
func (u StoreURL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.String()) }

// MarshalText is String for JSON and others.
func (u StoreURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// text assembles the URL.
func (u *StoreURL) text(user string) string {
	text := u.scheme.name + "://" + user + u.authority
	if u.path != "" {
		text += "/" + u.path
	}
	if u.rawParams != "" {
		text += "?" + u.rawParams
	}
	return text
}
