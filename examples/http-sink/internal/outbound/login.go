package outbound

import (
	"net/http"

	"github.com/numaproj-contrib/numathrottle/internal/program"
)

// A Login adds credentials to requests. Its methods are safe for concurrent use.
type Login interface {
	// Set adds to the header of a request, which it may change. Its error contains no secret.
	Set(h http.Header) error
	// Refused is called when the service answered 401 to a request with this header. It reports whether another attempt has other
	// credentials.
	Refused(h http.Header) bool
}

const authorization = "Authorization"

// Basic logs in with a user and a password.
func Basic(user string, password program.Credential) Login {
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
func Bearer(token program.Credential) Login {
	return headerLogin(func(h http.Header) error {
		text, err := token.ReadHeader()
		if err != nil {
			return err
		}
		h.Set(authorization, "Bearer "+text)
		return nil
	})
}

// Header logs in with a header of any name.
func Header(name string, value program.Credential) Login {
	return headerLogin(func(h http.Header) error {
		text, err := value.ReadHeader()
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

// Refused implements Login: a credential reread for each attempt cannot be newer.
func (headerLogin) Refused(http.Header) bool { return false }
