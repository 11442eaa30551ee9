package nats

import (
	"crypto/x509"
	"errors"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/drivers"
)

// check returns a fault for every unusable file that logs in to NATS.
func check(creds *drivers.Credentials) []error {
	_, faults := newLogin(creds)
	return faults
}

// A login logs in the connections of a store, each with the files as they are when it is made.
type login struct {
	opts  []nats.Option
	creds *drivers.Credentials
	user  *config.Followed[user] // of storeCredsFile or storeNkeyFile; nil: neither
}

// newLogin returns a login, and the faults of its files.
func newLogin(creds *drivers.Credentials) (l *login, faults []error) {
	l = &login{creds: creds}
	if conf := creds.TLS(); conf != nil {
		l.opts = append(l.opts, nats.Secure(conf))
		if conf.RootCAs != nil {
			l.opts = append(l.opts, func(o *nats.Options) error {
				o.RootCAsCB = func() (*x509.CertPool, error) { return creds.Authorities(), nil }
				return nil
			})
		}
	}
	var err error
	switch {
	case creds.Token.IsSet():
		l.opts = append(l.opts, nats.TokenHandler(func() string { return creds.Secret(&creds.Token) }))
	case creds.CredsFile != "":
		if l.user, err = followUser("storeCredsFile", creds.CredsFile, parseCreds); err != nil {
			faults = append(faults, err)
		}
		l.opts = append(l.opts, nats.UserJWT(func() (string, error) { return l.now().jwt, nil }, func(nonce []byte) ([]byte, error) {
			return l.now().sign(nonce)
		}))
	case creds.NkeyFile != "":
		if l.user, err = followUser("storeNkeyFile", creds.NkeyFile, parseNkey); err != nil {
			faults = append(faults, err)
		}
	case creds.HasLogin():
		l.opts = append(l.opts, nats.UserInfoHandler(creds.Login))
	}
	return l, faults
}

// now returns the user in the file.
func (l *login) now() user { return l.user.Get(l.creds.Log) }

// connect makes a connection. The client asks for a new signature for each login, but not for the public key of an nkey. It is changed
// here, while the client holds its lock, from when ready is called.
func (l *login) connect(o nats.Options) (nc *nats.Conn, ready func(), err error) {
	if l.creds.NkeyFile == "" {
		nc, err = o.Connect()
		return nc, func() {}, err
	}
	var conn atomic.Pointer[nats.Conn]
	used := l.now()
	o.Nkey = used.public
	o.SignatureCB = func(nonce []byte) ([]byte, error) {
		if now := l.now(); now.public != used.public {
			nc := conn.Load()
			if nc == nil {
				return used.sign(nonce)
			}
			used, nc.Opts.Nkey = now, now.public
			return nil, errors.New("storeNkeyFile has another seed, which the next attempt uses")
		}
		return used.sign(nonce)
	}
	nc, err = o.Connect()
	return nc, func() { conn.Store(nc) }, err
}

// A user is what logs in: a seed's key pair, with its public key or with a JWT.
type user struct {
	jwt, public string
	key         nkeys.KeyPair
}

func (u user) sign(nonce []byte) ([]byte, error) {
	if u.key == nil {
		return nil, errors.New("the file of the user could not be read yet")
	}
	return u.key.Sign(nonce)
}

// followUser follows the file with a user's seed that the setting key names.
func followUser(key, path string, parse func(content []byte) (user, error)) (*config.Followed[user], error) {
	return config.Follow(func() (user, error) {
		content, err := config.ReadFile(path)
		var u user
		if err == nil {
			u, err = parse(content)
		}
		if err != nil {
			return user{}, config.SecretFileFault(key, path, err)
		}
		return u, nil
	})
}

// parseCreds reads a user's JWT and seed.
func parseCreds(content []byte) (u user, err error) {
	var errJWT error
	u.jwt, errJWT = nkeys.ParseDecoratedJWT(content)
	if u.key, err = nkeys.ParseDecoratedUserNKey(content); err != nil || errJWT != nil {
		return u, errors.New("it holds no user JWT with its seed")
	}
	return u, nil
}

// parseNkey reads a user's seed.
func parseNkey(content []byte) (u user, err error) {
	if u.key, err = nkeys.ParseDecoratedUserNKey(content); err == nil {
		u.public, err = u.key.PublicKey()
	}
	if err != nil {
		return u, errors.New("it holds no nkey seed of a user")
	}
	return u, nil
}
