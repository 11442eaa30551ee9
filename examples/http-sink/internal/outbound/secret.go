package outbound

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/config"
)

// A Credential is a secret, given directly or in a file.
type Credential struct {
	Text numathrottle.Secret
	File string
	// Lines means that the file has several lines, such as a key in PEM. It is read unchanged.
	Lines bool
}

// IsSet reports whether there is one.
func (c Credential) IsSet() bool { return c.Text.IsSet() || c.File != "" }

// mostLines is the maximum size of a file with several lines, in bytes.
const mostLines = 64 << 10

// readLines reads a file with several lines.
func readLines(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, mostLines+1))
	if err == nil && len(content) > mostLines {
		err = fmt.Errorf("%s is longer than %d bytes", path, mostLines)
	}
	return string(content), err
}

// ReadRaw returns the secret. It rereads a file each time, and ignores one final line end. The error is that of config.ReadSecretFile.
func (c Credential) ReadRaw() (string, error) {
	if c.File == "" {
		return c.Text.Reveal(), nil
	}
	if c.Lines {
		return readLines(c.File)
	}
	return config.ReadSecretFile(c.File)
}

// Read is ReadRaw with an error that names its subject. It contains nothing of the file.
func (c Credential) Read() (string, error) {
	text, err := c.ReadRaw()
	if err != nil {
		return "", fmt.Errorf("a secret cannot be read: %w", err)
	}
	return text, nil
}

// readHeader is Read for the value of a header.
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
