package nats

import (
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/drivers"
)

// check returns a fault for every unusable file that logs in to NATS.
func check(creds *drivers.Credentials) []error {
	_, faults := logins(creds)
	return faults
}

// logins returns the options that log in, and the faults of their files.
func logins(creds *drivers.Credentials) (opts []nats.Option, faults []error) {
	token := creds.Token
	if creds.TLS != nil {
		opts = append(opts, nats.Secure(creds.TLS))
	}
	switch {
	case token.IsSet():
		last, err := token.Read(&creds.Seen)
		if err != nil {
			faults = append(faults, config.SecretFileFault("storeTokenFile", token.Path, err))
		}
		opts = append(opts, nats.TokenHandler(func() string {
			if text, err := token.Read(&creds.Seen); err == nil {
				return text
			}
			return last // the server's reaction is logged
		}))
	case creds.CredsFile != "":
		if err := checkCreds(creds.CredsFile); err != nil {
			faults = append(faults, config.SecretFileFault("storeCredsFile", creds.CredsFile, err))
		}
		opts = append(opts, nats.UserCredentials(creds.CredsFile))
	case creds.NkeyFile != "":
		option, err := nkeyOption(creds.NkeyFile)
		if err != nil {
			faults = append(faults, config.SecretFileFault("storeNkeyFile", creds.NkeyFile, err))
		}
		opts = append(opts, option)
	case creds.HasLogin():
		_, last, _ := creds.Login()
		opts = append(opts, nats.UserInfoHandler(func() (username, password string) {
			if username, password, err := creds.Login(); err == nil {
				return username, password
			}
			return creds.Username, last
		}))
	}
	return opts, faults
}

// checkCreds checks that a file holds a user's JWT and seed.
func checkCreds(path string) error {
	content, err := config.ReadFile(path)
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
	if _, err := config.ReadFile(path); err != nil {
		return nil, err
	}
	option, err := nats.NkeyOptionFromSeed(path)
	if err != nil {
		return nil, errors.New("it holds no nkey seed of a user")
	}
	return option, nil
}
