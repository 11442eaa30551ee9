package drivers

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"

	"github.com/numaproj-contrib/numathrottle/internal/config"
)

// Credentials are a client's login, and its means to check the server. Zero values are not set. Files are read again for every connection.
type Credentials struct {
	Username         string
	Password         Source
	SentinelUsername string
	// SentinelPassword is read once, because the client cannot ask for it again. Load sets its Text.
	SentinelPassword          Source
	Token                     Source
	InURL                     bool         // user, password or token were in the store's URL
	CredsFile, NkeyFile       string       // of NATS
	CAFile, CertFile, KeyFile string       // in PEM
	Seen                      Secrets      // every secret that was read
	Log                       *slog.Logger // gets the faults of files that changed; set by Open

	tls         *tls.Config // set by Load; nil: no TLS
	authorities *config.Followed[*x509.CertPool]
}

// A Source is a known secret, or one in a file that is followed.
type Source struct {
	Text, Path string

	file *config.Followed[string] // set by Load
}

// IsSet reports whether there is a text or a file.
func (s *Source) IsSet() bool { return s.Text != "" || s.Path != "" }

// follow reads the file of a secret, if it has one, which is that of the setting key.
func (s *Source) follow(key string, faults []error) []error {
	if s.Path == "" {
		return faults
	}
	var err error
	if s.file, err = config.FollowSecret(key, s.Path); err != nil {
		faults = append(faults, err)
	}
	return faults
}

// Load reads every file that the store's client needs, so that a wrong path is noticed at the start. A store whose driver the program does
// not import is a fault.
func (c *Credentials) Load(store *config.StoreURL) (faults []error) {
	c.InURL = c.InURL || store.HasUser
	switch {
	case !store.HasUser:
	case store.Kind == config.NATS && store.Password == "":
		c.Username, c.Password, c.Token = "", Source{}, Source{Text: store.Username} // as all NATS clients read such a URL
	default:
		c.Username, c.Password = store.Username, Source{Text: store.Password}
	}
	faults = c.Password.follow("storePasswordFile", faults)
	faults = c.SentinelPassword.follow("storeSentinelPasswordFile", faults)
	faults = c.Token.follow("storeTokenFile", faults)
	if len(faults) == 0 {
		c.SentinelPassword.Text = c.Secret(&c.SentinelPassword)
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
func (c *Credentials) Login() (username, password string) { return c.Username, c.Secret(&c.Password) }

// Secret returns the current text of a source, and remembers it in Seen.
func (c *Credentials) Secret(s *Source) string {
	text := s.Text
	if s.file != nil {
		text = s.file.Get(c.logger())
	}
	c.Seen.Add(text)
	return text
}

// logger returns Log; nothing is logged before the store is opened.
func (c *Credentials) logger() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}

// Authorities returns the ones that the next connection trusts; nil: the system's.
func (c *Credentials) Authorities() *x509.CertPool {
	if c.authorities == nil {
		return nil
	}
	return c.authorities.Get(c.logger())
}

// TLS returns the settings of the next connection; nil: no TLS.
func (c *Credentials) TLS() *tls.Config {
	if c.tls == nil {
		return nil
	}
	conf := c.tls.Clone()
	conf.RootCAs = c.Authorities()
	return conf
}

// loadTLS prepares TLS if the connection is to be encrypted.
func (c *Credentials) loadTLS(store *config.StoreURL) (faults []error) {
	if !store.TLS && c.CAFile == "" && c.CertFile == "" && store.ServerName == "" && !store.HandshakeFirst {
		return nil
	}
	c.tls = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: store.ServerName}
	var err error
	if c.CAFile != "" {
		c.authorities, err = config.Follow(func() (*x509.CertPool, error) { return config.Authorities("storeCAFile", c.CAFile) })
		if err != nil {
			faults = append(faults, err)
		}
	}
	if c.CertFile != "" && c.KeyFile != "" {
		pair, err := config.Follow(func() (*tls.Certificate, error) {
			return config.Pair("storeCertFile", c.CertFile, "storeKeyFile", c.KeyFile)
		})
		if err != nil {
			faults = append(faults, err)
		}
		c.tls.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair.Get(c.logger()), nil }
	}
	return faults
}
