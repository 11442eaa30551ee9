package cli

import (
	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
)

// storeName is the flag for the store's URL.
const storeName = "store"

// storeLogin returns the fault of a flag whose store URL contains a login, else nil.
func storeLogin(cmd *ucli.Command) error {
	if !cmd.IsSet(storeName) {
		return nil
	}
	if u, faults := config.ParseStore(cmd.String(storeName)); len(faults) > 0 || !u.HasUser {
		return nil
	}
	return &config.FieldError{
		Field: storeName, Problem: "has a user name, password or token before an @, which all users of the machine would see", Source: "--" + storeName,
		Allowed: "a URL without; the login in --store-username and --store-password-file, in variables such as " + config.Prefix +
			"STORE_PASSWORD, or with the URL in " + config.Prefix + "STORE",
	}
}
