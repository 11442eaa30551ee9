package drivers

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/numaproj-contrib/numathrottle/internal/config"
)

// Credentials are a client's login, and its means to check the server. Zero values are not set.
type Credentials struct {
	Username         string
	Password         Source
	SentinelUsername string
	// SentinelPassword is read once, because the client cannot ask for it again. Load sets its Text.
	SentinelPassword          Source
	Token                     Source
	InURL                     bool        // user, password or token were in the store's URL
	CredsFile, NkeyFile       string      // of NATS
	CAFile, CertFile, KeyFile string      // in PEM
	TLS                       *tls.Config // set by Load; nil: no TLS
	Seen                      Secrets     // every secret that was read
}

// A Source is a known secret, or one in a file that may change.
type Source struct{ Text, Path string }

// IsSet reports whether there is a text or a file.
func (s Source) IsSet() bool { return s.Text != "" || s.Path != "" }

// Read returns the secret and remembers it in seen.
func (s Source) Read(seen *Secrets) (string, error) {
	text := s.Text
	if s.Path != "" {
		var err error
		if text, err = config.ReadSecretFile(s.Path); err != nil {
			return "", err
		}
	}
	seen.Add(text)
	return text, nil
}

// Load reads every file that the store's client needs. Files that are reread for each connection are read once here, so that a wrong path
// is noticed at the start. A store whose driver the program does not import is a fault.
func (c *Credentials) Load(store *config.StoreURL) (faults []error) {
	c.InURL = c.InURL || store.HasUser
	switch {
	case !store.HasUser:
	case store.Kind == config.NATS && store.Password == "":
		c.Username, c.Password, c.Token = "", Source{}, Source{Text: store.Username} // as all NATS clients read such a URL
	default:
		c.Username, c.Password = store.Username, Source{Text: store.Password}
	}
	_, err := c.Password.Read(&c.Seen)
	if err != nil {
		faults = append(faults, config.SecretFileFault("storePasswordFile", c.Password.Path, err))
	}
	if c.SentinelPassword.Text, err = c.SentinelPassword.Read(&c.Seen); err != nil {
		faults = append(faults, config.SecretFileFault("storeSentinelPasswordFile", c.SentinelPassword.Path, err))
	}
	faults = append(faults, c.loadTLS(store)...)
	driver, err := find(store.Kind)
	if err != nil {
		return append(faults, err)
	}
	if driver.Check != nil {
		faults = append(faults, driver.Check(c)...)
	}
	return faults
}

// HasLogin reports whether there is a user name or a password.
func (c *Credentials) HasLogin() bool { return c.Username != "" || c.Password.IsSet() }

// Login returns the current user name and password.
func (c *Credentials) Login() (username, password string, err error) {
	password, err = c.Password.Read(&c.Seen)
	return c.Username, password, err
}

// loadTLS sets TLS if the connection is to be encrypted.
func (c *Credentials) loadTLS(store *config.StoreURL) []error {
	if !store.TLS && c.CAFile == "" && c.CertFile == "" && store.ServerName == "" {
		return nil
	}
	var faults []error
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: store.ServerName}
	if c.CAFile != "" {
		content, err := config.ReadFile(c.CAFile)
		conf.RootCAs = x509.NewCertPool()
		if err == nil && !conf.RootCAs.AppendCertsFromPEM(content) {
			err = errors.New("it holds no certificate in PEM")
		}
		if err != nil {
			faults = append(faults, config.SecretFileFault("storeCAFile", c.CAFile, err))
		}
	}
	if certFile, keyFile := c.CertFile, c.KeyFile; certFile != "" && keyFile != "" {
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
	c.TLS = conf
	return faults
}
