package program

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
)

// A Complaint reports a fault of a setting.
type Complaint func(field, problem, allowed string)

// ComplainTo returns a Complaint that notes faults in r.
func ComplainTo(r *config.Reading) Complaint {
	return func(field, problem, allowed string) {
		r.Note(&config.FieldError{Field: field, Problem: problem, Allowed: allowed})
	}
}

// A Setting may be given or not.
type Setting struct {
	key   string
	given bool
}

// Given returns the setting key, which is given or not.
func Given(key string, is bool) Setting { return Setting{key, is} }

// OneOf reports settings that are given beside the first given one.
func (bad Complaint) OneOf(allowed string, all ...Setting) {
	first := ""
	for _, s := range all {
		switch {
		case s.given && first != "":
			bad(s.key, "is set, and so is "+first, allowed)
		case s.given:
			first = s.key
		}
	}
}

// OrDefault sets an unset setting.
func OrDefault[T comparable](at *T, value T) {
	var zero T
	if *at == zero {
		*at = value
	}
}

// A Credential is a secret, given directly or in a file.
type Credential struct { //nolint:recvcheck // Follow alone changes it
	Text numathrottle.Secret
	File string
	// Lines means that the file has several lines, such as a key in PEM. It is read unchanged.
	Lines bool

	now func() string // set by Follow: what the file holds, or held last
}

// SecretField is a setting that is never printed.
func SecretField[S any](key, doc string, at func(S) *numathrottle.Secret) config.Field[S] {
	return opening.SecretField(key, doc, at)
}

// IsSet reports whether there is one.
func (c Credential) IsSet() bool { return c.Text.IsSet() || c.File != "" }

// Check reports a credential that is given twice, or cannot be read. With inHeader it must fit into the value of a header.
func (c Credential) Check(key string, inHeader bool, bad Complaint) {
	bad.OneOf("one of them", Given(key, c.Text.IsSet()), Given(key+"File", c.File != ""))
	text, err := c.ReadRaw()
	if err != nil {
		fault := config.SecretFileFault(key+"File", c.File, err)
		bad(fault.Field, fault.Problem, fault.Allowed)
	} else if problem := config.HeaderProblem(text); inHeader && problem != "" {
		bad(c.Key(key), problem, "visible ASCII, with spaces only between")
	}
}

// Key returns the setting in force of key and key + "File".
func (c Credential) Key(key string) string {
	if c.File != "" {
		return key + "File"
	}
	return key
}

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

// Follow keeps the content of the file in force while a replaced file cannot be used, which is logged. key is as in Check; with inHeader the
// secret must fit into the value of a header.
func (c *Credential) Follow(key string, inHeader bool, log *slog.Logger) {
	if c.File == "" {
		return
	}
	file := Credential{File: c.File, Lines: c.Lines}
	followed, _ := config.Follow(func() (string, error) {
		text, err := file.ReadRaw()
		if err != nil {
			return "", config.SecretFileFault(key+"File", file.File, err)
		}
		problem := ""
		if inHeader {
			problem = config.HeaderProblem(text)
		}
		if block, _ := pem.Decode([]byte(text)); c.Lines && block == nil {
			problem = "holds no whole block in PEM"
		}
		if problem != "" {
			return "", &config.FieldError{Field: key + "File", Problem: fmt.Sprintf("is %q, which %s", file.File, problem)}
		}
		return text, nil
	}) // a fault of the first time is that of the next reading
	c.now = func() string { return followed.Get(log) }
}

// ReadRaw returns the secret. It rereads a file each time, and ignores one final line end. The error is that of config.ReadSecretFile.
func (c Credential) ReadRaw() (string, error) {
	if c.File == "" {
		return c.Text.Reveal(), nil
	}
	if c.now != nil {
		if text := c.now(); text != "" {
			return text, nil
		} // it was never usable
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

// ReadHeader is Read for the value of a header.
func (c Credential) ReadHeader() (string, error) {
	text, err := c.Read()
	if err != nil {
		return "", err
	}
	if problem := config.HeaderProblem(text); problem != "" {
		return "", errors.New("a secret cannot be sent: it " + problem)
	}
	return text, nil
}
