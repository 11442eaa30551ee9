package opening

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/config"
)

// Of a secret one line end does not count, wherever it comes from: a variable, the configuration file, a file of its own, the URL, or a
// field that is set in Go.
func TestOneLineEndOfASecretDoesNotCount(t *testing.T) {
	password := func(c Config) string {
		store, faults := c.check()
		require.Empty(t, faults)
		creds, faults := c.loadCredentials(&store)
		require.Empty(t, faults)
		_, text := creds.Login()
		return text
	}
	for _, end := range []string{"", "\n", "\r\n"} {
		clearEnv(t)
		t.Setenv("NUMATHROTTLE_MAX", "5")
		t.Setenv("NUMATHROTTLE_POOL", "p")
		t.Setenv("NUMATHROTTLE_STORE", "redis://h"+end)
		t.Setenv("NUMATHROTTLE_STORE_PASSWORD", " "+canary+" "+end)
		c, err := Load()
		require.NoError(t, err)
		require.Equal(t, " "+canary+" ", password(c), "spaces are the password's")
		t.Setenv("NUMATHROTTLE_STORE_PASSWORD", "")
		require.Equal(t, canary, password(Config{Store: "redis://h", StorePassword: NewSecret(canary + end)}))
		require.Equal(t, canary, password(Config{Store: "redis://h", StorePasswordFile: writeFile(t, "password", canary+end)}))
		require.Equal(t, canary, password(Config{Store: "redis://:" + canary + url.QueryEscape(end) + "@h"}))
	}
}

// Any other control character is a fault that names the setting and the character, when the configuration is read.
func TestControlCharactersInSecretsAreFaults(t *testing.T) {
	for text, problem := range map[string]string{
		canary + "\n\n": "has a line feed (U+000A) at byte 15", "a\r" + canary: "has a carriage return (U+000D) at byte 2",
		"\ufeff" + canary: "begins with a byte-order mark", "\tx" + canary: "has a tab (U+0009) at byte 1",
	} {
		for _, c := range []struct {
			field, name string
			config      Config
		}{
			{"storePassword", "go", Config{Store: "redis://h", StorePassword: NewSecret(text)}},
			{"storeToken", "go", Config{Store: "nats://h", StoreToken: NewSecret(text)}},
			{"storePasswordFile", "file", Config{Store: "redis://h", StorePasswordFile: writeFile(t, "secret", text)}},
			{"storeTokenFile", "file", Config{Store: "nats://h", StoreTokenFile: writeFile(t, "secret", text)}},
			{"storeSentinelPassword", "go", Config{Store: "redis+sentinel://h/m", StoreSentinelPassword: NewSecret(text)}},
			{"storeSentinelPasswordFile", "file", Config{Store: "redis+sentinel://h/m", StoreSentinelPasswordFile: writeFile(t, "secret", text)}},
			{"store", "url", Config{Store: "redis://:" + url.QueryEscape(text) + "@h"}},
		} {
			store, faults := c.config.check()
			if len(faults) == 0 {
				_, faults = c.config.loadCredentials(&store)
			}
			err := config.Join(faults)
			require.ErrorContains(t, err, problem, "%s, %s", c.field, c.name)
			require.ErrorContains(t, err, "numathrottle: "+c.field+" ")
			require.NotContains(t, err.Error(), canary)
		}
		clearEnv(t)
		t.Setenv("NUMATHROTTLE_STORE", "nats://h")
		t.Setenv("NUMATHROTTLE_STORE_TOKEN", text)
		_, err := Load()
		require.ErrorContains(t, err, problem+" (NUMATHROTTLE_STORE_TOKEN)")
		require.NotContains(t, err.Error(), canary)
	}
}
