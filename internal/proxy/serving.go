package proxy

import (
	"cmp"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/internal/program"
)

// Prefix is the prefix of the variables of a proxy's own settings.
const Prefix = config.Prefix + "PROXY_"

// Topic is the heading of the settings that several proxies share.
const Topic = "HTTP proxy and permit server"

// DefaultGrace bounds how long a proxy continues after the signal to stop.
const DefaultGrace = 25 * time.Second

// A Serving configures a proxy's listener and its access.
type Serving struct {
	// Listen lists the addresses, in the form of listen.Parse. The proxy has a default.
	Listen string
	// Token, or TokenFile in its place, is the token that callers must send; see package listen. TokenFile is reread when it has changed.
	Token     numathrottle.Secret
	TokenFile string
	// HostNames are further host names that a loopback address accepts, in the form of listen.ParseNames.
	HostNames string
	// Grace bounds how long the proxy continues after its context has ended, while it is used. Defaults to DefaultGrace.
	Grace time.Duration
}

// ServingFields describes the settings of a Serving.
func ServingFields[C any](byDefault string, at func(C) *Serving) []config.Field[C] {
	return config.About(Topic, config.WithPrefix(
		Prefix,
		Parsed("listen", listen.Allowed, "`"+byDefault+"`", "Where the proxy listens",
			func(c C) *string { return &at(c).Listen }, listen.Parse).Like("unix:/run/numathrottle.sock"),
		program.SecretField("token", "What callers send; needed at an address that isn't local, with at least 16 bytes",
			func(c C) *numathrottle.Secret { return &at(c).Token }),
		config.PathField("tokenFile", "none", "The token in a file, such as a mounted Secret; reread when it changes",
			func(c C) *string { return &at(c).TokenFile }),
		Parsed("hostNames", listen.AllowedNames, "none",
			"Names for a loopback address beside `localhost`; pages of other sites are refused",
			func(c C) *string { return &at(c).HostNames }, listen.ParseNames).Like("proxy.test"),
		config.DurationField("grace", time.Millisecond, 10*time.Minute, "`25s`",
			"How long the proxy serves its callers at most after SIGTERM",
			func(c C) *time.Duration { return &at(c).Grace }).Like("10s"),
	)...)
}

// Parsed is a text that parse accepts.
func Parsed[C, T any](key, allowed, byDefault, doc string, at func(C) *string, parse func(string) (T, bool)) config.Field[C] {
	f := config.TextField(key, allowed, byDefault, doc, at)
	f.Range = func(c C) bool {
		_, ok := parse(*at(c))
		return ok || *at(c) == ""
	}
	return f
}

// Check returns the faults of the addresses together with the token: a *config.FieldError for each.
func (s *Serving) Check() (faults []error) {
	if s.Token.IsSet() && s.TokenFile != "" {
		faults = append(faults, &config.FieldError{Field: "tokenFile", Problem: "is set, and so is token", Allowed: "one of them"})
	}
	return append(faults, s.CheckAddress("listen", s.Listen)...)
}

// CheckAddress returns a fault for a field with an address that needs a token, unless there is one.
func (s *Serving) CheckAddress(field, addresses string) []error {
	addrs, ok := listen.Parse(addresses)
	a, needs := listen.NeedsToken(addrs)
	switch {
	case !ok || !needs || s.TokenFile != "":
		return nil
	case s.Token.IsSet():
		return CheckLength("token", s.Token, field, addresses)
	}
	return []error{&config.FieldError{
		Field: field, Problem: fmt.Sprintf("has %s, which can be reached from elsewhere, and there is no token", a),
		Allowed: "unix sockets and loopback addresses, or a token",
	}}
}

// CheckLength returns a fault for a token that is too short for addresses, which are in another field. No token is no fault.
func CheckLength(field string, token numathrottle.Secret, at, addresses string) []error {
	addrs, _ := listen.Parse(addresses)
	a, needs := listen.NeedsToken(addrs)
	n := len(token.Reveal())
	if !needs || n == 0 || n >= listen.MinTokenBytes {
		return nil
	}
	return []error{&config.FieldError{
		Field: field, Problem: fmt.Sprintf("has %d bytes, and %s has %s, which can be reached from elsewhere", n, at, a),
		Allowed: fmt.Sprintf("at least %d bytes", listen.MinTokenBytes),
	}}
}

// WithDefaults fills in the defaults.
func (s *Serving) WithDefaults(byDefault string) Serving {
	d := *s
	d.Listen = cmp.Or(s.Listen, byDefault)
	d.Grace = cmp.Or(s.Grace, DefaultGrace)
	return d
}

// Names returns the parsed HostNames.
func (s *Serving) Names() listen.Names {
	names, _ := listen.ParseNames(s.HostNames)
	return names
}

// Secret returns the initial token; empty for none. An error shows no secret.
func (s *Serving) Secret() (string, error) { return FirstToken(s.Token, "tokenFile", s.TokenFile) }

// FirstToken returns a program's initial token: the content of the file, if there is one, else token. field is the setting of the file, for
// errors, which show no secret.
func FirstToken(token numathrottle.Secret, field, file string) (string, error) {
	if file == "" {
		return token.Reveal(), nil
	}
	text, err := config.ReadSecretFile(file)
	if err != nil {
		return "", config.SecretFileFault(field, file, err)
	}
	return text, nil
}
