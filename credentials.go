package numathrottle

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/numaproj-contrib/numathrottle/internal/config"
)

// credentials is what a client logs in with, and checks the server with.
type credentials struct {
	username string
	password source
	// sentinelPassword is read once, for the client cannot ask for it anew.
	sentinelPassword string
	tls              *tls.Config // nil: no TLS
	nats             []nats.Option
	seen             secrets
}

// A source is a secret that is known, or that stands in a file and may change.
type source struct{ text, path string }

func (s source) isSet() bool { return s.text != "" || s.path != "" }

// read returns the secret and remembers it in seen.
func (s source) read(seen *secrets) (string, error) {
	text := s.text
	if s.path != "" {
		var err error
		if text, err = config.ReadSecretFile(s.path); err != nil {
			return "", err
		}
	}
	seen.add(text)
	return text, nil
}

// maxCredentials is the longest file of credentials or certificates, in bytes.
const maxCredentials = 1 << 20

// readFile reads a file of a reasonable size. Errors do not show what is in it.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxCredentials+1))
	switch {
	case err != nil:
		return nil, err
	case len(content) > maxCredentials:
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxCredentials)
	case strings.TrimSpace(string(content)) == "":
		return nil, fmt.Errorf("%s is empty", path)
	}
	return content, nil
}

// fileFault says why a file cannot be used.
func fileFault(key, path string, err error) error { return config.SecretFileFault(key, path, err) }

// loadCredentials reads every file that the store's client needs. Those that are
// read again for each connection are read once here, so that a wrong path is
// noticed at the start.
func (c Config) loadCredentials(store *config.StoreURL) (*credentials, []error) {
	creds := &credentials{username: c.StoreUsername, password: source{c.StorePassword.reveal(), c.StorePasswordFile}}
	if store.HasUser {
		creds.username, creds.password = store.Username, source{text: store.Password}
	}
	var faults []error
	try := func(key, path string, err error) {
		if err != nil {
			faults = append(faults, fileFault(key, path, err))
		}
	}
	_, err := creds.password.read(&creds.seen)
	try("storePasswordFile", c.StorePasswordFile, err)
	creds.sentinelPassword, err = source{c.StoreSentinelPassword.reveal(), c.StoreSentinelPasswordFile}.read(&creds.seen)
	try("storeSentinelPasswordFile", c.StoreSentinelPasswordFile, err)

	faults = append(faults, c.loadTLS(store, creds)...)
	if store.Kind == config.NATS {
		faults = append(faults, c.loadNATS(store, creds)...)
	}
	return creds, faults
}

// hasLogin tells whether there is a user name or a password.
func (cr *credentials) hasLogin() bool { return cr.username != "" || cr.password.isSet() }

// login returns user name and password as they are now.
func (cr *credentials) login() (username, password string, err error) {
	password, err = cr.password.read(&cr.seen)
	return cr.username, password, err
}

// loadTLS sets creds.tls if the connection is to be encrypted.
func (c Config) loadTLS(store *config.StoreURL, creds *credentials) []error {
	if !store.TLS && c.StoreCAFile == "" && c.StoreCertFile == "" && store.ServerName == "" {
		return nil
	}
	var faults []error
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: store.ServerName}
	if c.StoreCAFile != "" {
		content, err := readFile(c.StoreCAFile)
		conf.RootCAs = x509.NewCertPool()
		if err == nil && !conf.RootCAs.AppendCertsFromPEM(content) {
			err = errors.New("it holds no certificate in PEM")
		}
		if err != nil {
			faults = append(faults, fileFault("storeCAFile", c.StoreCAFile, err))
		}
	}
	if certFile, keyFile := c.StoreCertFile, c.StoreKeyFile; certFile != "" && keyFile != "" {
		if _, err := tls.LoadX509KeyPair(certFile, keyFile); err != nil {
			faults = append(faults, &config.FieldError{
				Field:   "storeCertFile and storeKeyFile",
				Problem: fmt.Sprintf("are %q and %q, which cannot be used: %v", certFile, keyFile, err),
			})
		}
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(certFile, keyFile)
			return &cert, err
		}
	}
	creds.tls = conf
	return faults
}

// loadNATS sets creds.nats to the options that log in.
func (c Config) loadNATS(store *config.StoreURL, creds *credentials) []error {
	token := source{c.StoreToken.reveal(), c.StoreTokenFile}
	if store.HasUser && store.Password == "" {
		token = source{text: store.Username} // as all NATS clients read such a URL
		creds.username = ""
	}
	if creds.tls != nil {
		creds.nats = append(creds.nats, nats.Secure(creds.tls))
	}
	var faults []error
	switch {
	case token.isSet():
		last, err := token.read(&creds.seen)
		if err != nil {
			faults = append(faults, fileFault("storeTokenFile", c.StoreTokenFile, err))
		}
		creds.nats = append(creds.nats, nats.TokenHandler(func() string {
			if text, err := token.read(&creds.seen); err == nil {
				return text
			}
			return last // what the server says of it is logged
		}))
	case c.StoreCredsFile != "":
		if err := checkCreds(c.StoreCredsFile); err != nil {
			faults = append(faults, fileFault("storeCredsFile", c.StoreCredsFile, err))
		}
		creds.nats = append(creds.nats, nats.UserCredentials(c.StoreCredsFile))
	case c.StoreNkeyFile != "":
		option, err := nkeyOption(c.StoreNkeyFile)
		if err != nil {
			faults = append(faults, fileFault("storeNkeyFile", c.StoreNkeyFile, err))
		}
		creds.nats = append(creds.nats, option)
	case creds.hasLogin():
		_, last, _ := creds.login()
		creds.nats = append(creds.nats, nats.UserInfoHandler(func() (username, password string) {
			if username, password, err := creds.login(); err == nil {
				return username, password
			}
			return creds.username, last
		}))
	}
	return faults
}

// checkCreds finds out whether a file holds a user's JWT and seed.
func checkCreds(path string) error {
	content, err := readFile(path)
	if err != nil {
		return err
	}
	_, errJWT := nkeys.ParseDecoratedJWT(content)
	key, errSeed := nkeys.ParseDecoratedUserNKey(content)
	if errJWT != nil || errSeed != nil {
		return errors.New("it holds no user JWT with its seed")
	}
	key.Wipe()
	return nil
}

// nkeyOption returns the option for a file with an nkey seed.
func nkeyOption(path string) (nats.Option, error) {
	if _, err := readFile(path); err != nil {
		return nil, err
	}
	option, err := nats.NkeyOptionFromSeed(path)
	if err != nil {
		return nil, errors.New("it holds no nkey seed of a user")
	}
	return option, nil
}
