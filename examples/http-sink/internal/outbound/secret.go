package outbound

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/numaproj-contrib/numathrottle"
)

// A Credential is a secret that is given, or that stands in a file.
type Credential struct {
	Text numathrottle.Secret
	File string
}

// IsSet tells whether there is one.
func (c Credential) IsSet() bool { return c.Text.IsSet() || c.File != "" }

// Read returns the secret: a file is read anew each time, and white space around it does not
// count. The error does not hold what is in the file.
func (c Credential) Read() (string, error) {
	if c.File == "" {
		return c.Text.Reveal(), nil
	}
	content, err := os.ReadFile(c.File)
	if err != nil {
		return "", fmt.Errorf("a secret cannot be read: %w", err)
	}
	text := strings.TrimSpace(string(content))
	if text == "" {
		return "", fmt.Errorf("a secret cannot be read: %s is empty", c.File)
	}
	return text, nil
}

var errBadSecret = errors.New("a secret has characters that a header cannot hold")

// readHeader is Read for what becomes part of a header.
func (c Credential) readHeader() (string, error) {
	text, err := c.Read()
	if err == nil && strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", errBadSecret
	}
	return text, err
}
