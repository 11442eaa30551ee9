package outbound

import (
	"errors"
	"fmt"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/config"
)

// A Credential is a secret that is given, or that stands in a file.
type Credential struct {
	Text numathrottle.Secret
	File string
}

// IsSet tells whether there is one.
func (c Credential) IsSet() bool { return c.Text.IsSet() || c.File != "" }

// ReadRaw returns the secret: a file is read anew each time, and one line end behind it does not count. The error is that
// of config.ReadSecretFile.
func (c Credential) ReadRaw() (string, error) {
	if c.File == "" {
		return c.Text.Reveal(), nil
	}
	return config.ReadSecretFile(c.File)
}

// Read is ReadRaw with an error that says what it is about. It does not hold what is in the file.
func (c Credential) Read() (string, error) {
	text, err := c.ReadRaw()
	if err != nil {
		return "", fmt.Errorf("a secret cannot be read: %w", err)
	}
	return text, nil
}

// readHeader is Read for what becomes the value of a header.
func (c Credential) readHeader() (string, error) {
	text, err := c.Read()
	if err != nil {
		return "", err
	}
	if problem := config.HeaderProblem(text); problem != "" {
		return "", errors.New("a secret cannot be sent: it " + problem)
	}
	return text, nil
}
