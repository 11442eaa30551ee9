package outbound

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// A Login puts credentials into requests. Its methods may be called from any number of
// goroutines at once.
type Login interface {
	// Set adds to the header of a request, which is the Login's to change. Its error holds
	// no secret.
	Set(h http.Header) error
	// Refused is called when the service answered 401 to a request with this header, and tells
	// whether another attempt has other credentials.
	Refused(h http.Header) bool
}

const authorization = "Authorization"

// Basic logs in with a user and a password.
func Basic(user string, password Credential) Login {
	return headerLogin(func(h http.Header) error {
		text, err := password.Read()
		if err != nil {
			return err
		}
		r := http.Request{Header: h}
		r.SetBasicAuth(user, text)
		return nil
	})
}

// Bearer logs in with a token.
func Bearer(token Credential) Login {
	return headerLogin(func(h http.Header) error {
		text, err := token.readHeader()
		if err != nil {
			return err
		}
		h.Set(authorization, "Bearer "+text)
		return nil
	})
}

// Header logs in with a header of any name.
func Header(name string, value Credential) Login {
	return headerLogin(func(h http.Header) error {
		text, err := value.readHeader()
		if err != nil {
			return err
		}
		h.Set(name, text)
		return nil
	})
}

type headerLogin func(http.Header) error

// Set implements Login.
func (l headerLogin) Set(h http.Header) error { return l(h) }

// Refused implements Login: what is read anew for each attempt is as new as it can be.
func (headerLogin) Refused(http.Header) bool { return false }

// ClientCredentials says how a token is had from an OAuth 2.0 server.
type ClientCredentials struct {
	TokenURL string
	ClientID string
	Secret   Credential
	Scopes   []string
	Audience string
	// Early is how long before its end a token is replaced.
	Early time.Duration
	// Timeout bounds one request for a token.
	Timeout time.Duration
}

// OAuth2 logs in with a token of the client credentials grant (RFC 6749, section 4.4). A
// token is kept until shortly before its end, and replaced when the service refuses it. base sends
// the requests for tokens, which are not part of any limit.
func OAuth2(c ClientCredentials, base http.RoundTripper) Login {
	client := &http.Client{
		Transport: base, Timeout: c.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &tokenLogin{c: c, ctx: context.WithValue(context.Background(), oauth2.HTTPClient, client)}
}

type tokenLogin struct {
	c   ClientCredentials
	ctx context.Context //nolint:containedctx // carries the client, as package oauth2 wants it

	mu      sync.Mutex
	source  oauth2.TokenSource
	current string    // the token that was handed out last
	renewed time.Time // when one was last given up
}

// leastRenewal keeps a service that refuses every token from causing a request for another with each call.
const leastRenewal = 10 * time.Second

// Set implements Login.
func (l *tokenLogin) Set(h http.Header) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.source == nil {
		l.source = oauth2.ReuseTokenSourceWithExpiry(nil, tokenFunc(l.fetch), l.c.Early)
	}
	token, err := l.source.Token()
	if err != nil {
		return tokenError(err)
	}
	l.current = token.AccessToken
	h.Set(authorization, token.Type()+" "+token.AccessToken)
	return nil
}

// fetch asks for a token, with the secret as it is now.
func (l *tokenLogin) fetch() (*oauth2.Token, error) {
	secret, err := l.c.Secret.Read()
	if err != nil {
		return nil, err
	}
	config := clientcredentials.Config{ClientID: l.c.ClientID, ClientSecret: secret, TokenURL: l.c.TokenURL, Scopes: l.c.Scopes}
	if l.c.Audience != "" {
		config.EndpointParams = map[string][]string{"audience": {l.c.Audience}}
	}
	return config.Token(l.ctx)
}

// Refused implements Login.
func (l *tokenLogin) Refused(h http.Header) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sent := h.Get(authorization); l.current != "" && !hasToken(sent, l.current) {
		return true // there is a newer one already
	}
	if time.Since(l.renewed) < leastRenewal {
		return false
	}
	l.renewed, l.source, l.current = time.Now(), nil, ""
	return true
}

func hasToken(header, token string) bool {
	return len(header) > len(token) && header[len(header)-len(token):] == token
}

type tokenFunc func() (*oauth2.Token, error)

// Token implements oauth2.TokenSource.
func (f tokenFunc) Token() (*oauth2.Token, error) { return f() }

// tokenError leaves out what the server has answered, which may repeat the secret.
func tokenError(err error) error {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		status := 0
		if refused.Response != nil {
			status = refused.Response.StatusCode
		}
		return fmt.Errorf("no token: the token endpoint answered with status %d", status)
	}
	if errors.Is(err, ErrAddress) {
		return fmt.Errorf("no token: %w", ErrAddress)
	}
	return errors.New("no token: the token endpoint could not be reached, or its answer not be read")
}
