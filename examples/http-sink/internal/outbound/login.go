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
// token is kept until shortly before its end, and replaced when the service refuses it. One that cannot be replaced
// is used to its end. base sends the requests for tokens, which are not part of any limit.
func OAuth2(c ClientCredentials, base http.RoundTripper) Login {
	client := &http.Client{
		Transport: base, Timeout: c.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	l := &tokenLogin{early: c.Early}
	l.fetch = func() (*oauth2.Token, error) {
		return c.token(context.WithValue(context.Background(), oauth2.HTTPClient, client))
	}
	return l
}

// token asks for a token, with the secret as it is now.
func (c *ClientCredentials) token(ctx context.Context) (*oauth2.Token, error) {
	secret, err := c.Secret.Read()
	if err != nil {
		return nil, err
	}
	config := clientcredentials.Config{ClientID: c.ClientID, ClientSecret: secret, TokenURL: c.TokenURL, Scopes: c.Scopes}
	if c.Audience != "" {
		config.EndpointParams = map[string][]string{"audience": {c.Audience}}
	}
	return config.Token(ctx)
}

type tokenLogin struct {
	fetch func() (*oauth2.Token, error)
	early time.Duration

	mu      sync.Mutex
	token   *oauth2.Token // nil: there is none
	replace time.Time     // when the next one is fetched
	busy    chan struct{} // closed when the fetch under way has ended; nil: there is none
	failed  error         // of the last fetch
	renewed time.Time     // when one was last given up
}

// leastRenewal keeps a service that refuses every token, and a token endpoint that fails, from causing a request
// for another with each call.
const leastRenewal = 10 * time.Second

// Set implements Login. One caller fetches a token; the others use the one before while it is good, and wait
// where there is none.
func (l *tokenLogin) Set(h http.Header) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.usable(time.Now()) {
		if l.busy == nil {
			if err := l.renew(); err != nil {
				return tokenError(err)
			}
			break
		}
		busy := l.busy
		l.mu.Unlock()
		<-busy
		l.mu.Lock()
		if l.failed != nil && !l.good(time.Now()) {
			return tokenError(l.failed) // which is as new as can be
		}
	}
	h.Set(authorization, l.token.Type()+" "+l.token.AccessToken)
	return nil
}

// usable tells whether the token can be sent, and needs nobody to replace it at present. l.mu is held.
func (l *tokenLogin) usable(now time.Time) bool {
	return l.good(now) && (l.busy != nil || l.replace.IsZero() || now.Before(l.replace))
}

// good tells whether there is a token that has not come to its end. l.mu is held.
func (l *tokenLogin) good(now time.Time) bool {
	return l.token != nil && (l.token.Expiry.IsZero() || now.Before(l.token.Expiry))
}

// renew fetches a token. A failure is no error while the one before is good. l.mu is held, but for the fetching.
func (l *tokenLogin) renew() error {
	l.busy = make(chan struct{})
	l.mu.Unlock()
	began := time.Now()
	token, err := l.fetch()
	l.mu.Lock()
	close(l.busy)
	l.busy = nil
	if l.failed = err; err != nil {
		now := time.Now()
		l.replace = now.Add(leastRenewal)
		if l.good(now) {
			return nil
		}
		return err
	}
	l.token, l.replace = token, time.Time{}
	if !token.Expiry.IsZero() {
		l.replace = token.Expiry.Add(-min(l.early, token.Expiry.Sub(began)/2))
	}
	return nil
}

// Refused implements Login.
func (l *tokenLogin) Refused(h http.Header) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sent := h.Get(authorization); l.token != nil && !hasToken(sent, l.token.AccessToken) {
		return true // there is a newer one already
	}
	if time.Since(l.renewed) < leastRenewal {
		return false
	}
	l.renewed, l.token = time.Now(), nil
	return true
}

func hasToken(header, token string) bool {
	return len(header) > len(token) && header[len(header)-len(token):] == token
}

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
