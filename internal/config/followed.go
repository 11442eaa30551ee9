package config

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// A Followed is the content of a file that a setting names. Each Get reads the file, so that a replaced one counts however it was
// replaced: in place, by a rename, or by a symbolic link that points elsewhere. It is safe for concurrent use.
type Followed[T any] struct {
	read func() (T, error)

	mu    sync.Mutex
	last  T      // of the last usable file
	fault string // logged; empty: the file was usable
}

// Follow reads a file for the first time. The errors of read name the setting and the file, and show nothing of its content; those of the
// first time are returned.
func Follow[T any](read func() (T, error)) (*Followed[T], error) {
	f := &Followed[T]{read: read}
	var err error
	f.last, err = read()
	return f, err
}

// FollowSecret follows the file with a secret that the setting key names.
func FollowSecret(key, path string) (*Followed[string], error) {
	return Follow(func() (string, error) {
		text, err := ReadSecretFile(path)
		if err != nil {
			return "", SecretFileFault(key, path, err)
		}
		return text, nil
	})
}

// Get returns the content of the file. While the file cannot be used, it returns the last content that was usable, and log gets the reason once.
func (f *Followed[T]) Get(log *slog.Logger) T {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := f.read()
	switch {
	case err == nil:
		if f.fault != "" {
			log.Info("the file of a setting can be used again", "was", f.fault)
		}
		f.last, f.fault = now, ""
	case f.fault != err.Error():
		f.fault = err.Error()
		log.Error("the file of a setting cannot be used: what it held before stays in force until it can", "error", err)
	}
	return f.last
}

// Authorities returns the certificates in PEM in the file that the setting key names.
func Authorities(key, path string) (*x509.CertPool, error) {
	content, err := ReadFile(path)
	pool := x509.NewCertPool()
	switch {
	case err != nil:
	case isCut(content):
		err = errors.New("its last block in PEM has no end")
	case !pool.AppendCertsFromPEM(content):
		err = errors.New("it holds no certificate in PEM")
	}
	if err != nil {
		return nil, SecretFileFault(key, path, err)
	}
	return pool, nil
}

// isCut reports whether a file in PEM ends within a block.
func isCut(content []byte) bool {
	for {
		block, rest := pem.Decode(content)
		if block == nil {
			return bytes.Contains(rest, []byte("-----BEGIN "))
		}
		content = rest
	}
}

// Pair returns the certificate in one file and its key in another, which two settings name.
func Pair(certKey, certFile, keyKey, keyFile string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, &FieldError{
			Field: certKey + " and " + keyKey, Problem: fmt.Sprintf("are %q and %q, which cannot be used: %v", certFile, keyFile, err),
		}
	}
	return &pair, nil
}
