package drivers

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/config"
)

// Settings are the configured credentials. Zero values are not set.
type Settings struct {
	Username                  string
	Password                  Source
	SentinelUsername          string
	SentinelPassword          Source
	Token                     Source
	InURL                     bool   // user, password or token were in the store's URL
	CredsFile, NkeyFile       string // of NATS
	CAFile, CertFile, KeyFile string // in PEM
}

// Credentials are a client's login, and its means to check the server.
type Credentials struct {
	Username string
	Password Source
	// SentinelPassword is read once, because the client cannot ask for it again.
	SentinelUsername, SentinelPassword string
	Token                              Source
	InURL                              bool // as in Settings
	CredsFile, NkeyFile                string
	TLS                                *tls.Config // nil: no TLS
	Seen                               Secrets     // every secret that was read
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

// maxCredentials is the maximum size of a file of credentials or certificates, in bytes.
const maxCredentials = 1 << 20

// ReadFile reads a file of a reasonable size. Errors do not show its content.
func ReadFile(path string) ([]byte, error) {
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

// FileFault says why a file cannot be used.
func FileFault(key, path string, err error) error { return config.SecretFileFault(key, path, err) }

// Load reads every file that the store's client needs. Files that are reread for each connection are read once here, so that a wrong path
// is noticed at the start. A store whose driver the program does not import is a fault.
func Load(s *Settings, store *config.StoreURL) (*Credentials, []error) {
	creds := &Credentials{
		Username: s.Username, Password: s.Password, SentinelUsername: s.SentinelUsername, Token: s.Token, InURL: s.InURL || store.HasUser,
		CredsFile: s.CredsFile, NkeyFile: s.NkeyFile,
	}
	switch {
	case !store.HasUser:
	case store.Kind == config.NATS && store.Password == "":
		creds.Username, creds.Password, creds.Token = "", Source{}, Source{Text: store.Username} // as all NATS clients read such a URL
	default:
		creds.Username, creds.Password = store.Username, Source{Text: store.Password}
	}
	var faults []error
	try := func(key, path string, err error) {
		if err != nil {
			faults = append(faults, FileFault(key, path, err))
		}
	}
	_, err := creds.Password.Read(&creds.Seen)
	try("storePasswordFile", creds.Password.Path, err)
	creds.SentinelPassword, err = s.SentinelPassword.Read(&creds.Seen)
	try("storeSentinelPasswordFile", s.SentinelPassword.Path, err)

	faults = append(faults, s.loadTLS(store, creds)...)
	driver, err := find(store.Kind)
	if err != nil {
		return creds, append(faults, err)
	}
	if driver.Check != nil {
		faults = append(faults, driver.Check(creds)...)
	}
	return creds, faults
}

// HasLogin reports whether there is a user name or a password.
func (c *Credentials) HasLogin() bool { return c.Username != "" || c.Password.IsSet() }

// Login returns the current user name and password.
func (c *Credentials) Login() (username, password string, err error) {
	password, err = c.Password.Read(&c.Seen)
	return c.Username, password, err
}

// loadTLS sets creds.TLS if the connection is to be encrypted.
func (s *Settings) loadTLS(store *config.StoreURL, creds *Credentials) []error {
	if !store.TLS && s.CAFile == "" && s.CertFile == "" && store.ServerName == "" {
		return nil
	}
	var faults []error
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: store.ServerName}
	if s.CAFile != "" {
		content, err := ReadFile(s.CAFile)
		conf.RootCAs = x509.NewCertPool()
		if err == nil && !conf.RootCAs.AppendCertsFromPEM(content) {
			err = errors.New("it holds no certificate in PEM")
		}
		if err != nil {
			faults = append(faults, FileFault("storeCAFile", s.CAFile, err))
		}
	}
	if certFile, keyFile := s.CertFile, s.KeyFile; certFile != "" && keyFile != "" {
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
	creds.TLS = conf
	return faults
}
