package opening

import (
	"fmt"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// check returns the parsed store URL, and all faults of c.
func (c Config) check() (config.StoreURL, []error) {
	faults := config.Check(fields, &c)
	if len(faults) == 0 {
		// Each field is in range by itself, but a combination may be out of bounds.
		for _, err := range config.Split(c.Limit.Validate()) {
			faults = append(faults, &config.SettingError{Key: limitSetting(err), Err: fmt.Errorf("numathrottle: %w", err)})
		}
		faults = append(faults, CheckQuotas(&c)...)
	}
	if c.Limit.Hard && c.OnStoreLoss == StoreLossDegrade {
		faults = append(faults, &config.FieldError{
			Field: "onStoreLoss", Problem: "is degrade, which may exceed a hard limit", Allowed: "`stop` with hard",
		})
	}
	if c.Limit.Strict && c.OnStoreLoss == StoreLossDegrade {
		faults = append(faults, &config.FieldError{
			Field: "onStoreLoss", Problem: "is degrade, but a strict limit has nothing to go on with", Allowed: "`stop` with strict",
		})
	}
	store, wrong := config.ParseStore(c.Store)
	if len(wrong) > 0 {
		return store, append(faults, wrong...)
	}
	if c.Limit.Strict && c.Limit.Max > 0 && store.Kind == config.Static {
		faults = append(faults, &config.FieldError{
			Field: "strict", Problem: "is true, but the store is static", Allowed: "false with static://, which issues nothing",
		})
	}
	return store, append(faults, c.checkCredentials(&store)...)
}

// limitSetting returns the setting that an error of a Limit is about.
func limitSetting(err error) string {
	key, _, _ := LimitFault(err)
	return key
}

// LimitFault splits an error of a Limit, "limit: burst is 5, allowed: ...", for a program of this module whose limit has another name.
func LimitFault(err error) (key, problem, allowed string) {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "limit: "), "ramp: ")
	key, rest, _ := strings.Cut(text, " ")
	problem, allowed, _ = strings.Cut(rest, ", allowed: ")
	if strings.HasPrefix(key, "mode") { // mode, or one of its settings
		key = "modes"
	}
	return key, problem, allowed
}

// checkPool rejects a missing pool name on a store that services share: all services without one would share a limit, and none would know.
func (c Config) checkPool(store *config.StoreURL) []error {
	if c.Pool != "" || !isShared(store) {
		return nil
	}
	return []error{&config.FieldError{
		Field: "pool", Problem: "is not set: every service that uses this store and sets none would share one limit",
		Allowed: "a name of up to 256 bytes, the same in all pods that share the limit (" + config.Variable("pool") + ")",
	}}
}

// CheckNamed makes Open's checks that ReadFlags leaves out: it rejects quotas without a limit, and a limit without a pool name on a store
// that services share.
func CheckNamed(c *Config, r *config.Reading) []error {
	if c.Limit.Max == 0 {
		return CheckQuotas(c)
	}
	if r.Source("pool") != "" || vertexPool() != "" {
		return nil
	}
	store, _ := config.ParseStore(c.Store)
	return Config{}.checkPool(&store)
}

// CheckUnlimited is CheckNamed for a program with other limits than Limit, such as calls in flight. The names of their pools begin with the
// name of this pool.
func CheckUnlimited(c *Config) []error {
	if c.Limit.Max != 0 { // Validate reports it
		return nil
	}
	pool := c.withEnvironment()
	store, _ := config.ParseStore(c.Store)
	return pool.checkPool(&store)
}

// checkCredentials finds contradicting credentials, and credentials that the store does not use: those were probably meant for another
// store.
func (c Config) checkCredentials(store *config.StoreURL) []error {
	var faults []error
	refuse := func(field, problem, allowed string) {
		faults = append(faults, &config.FieldError{Field: field, Problem: problem, Allowed: allowed})
	}
	set := map[string]bool{"the URL": store.HasUser}
	for _, s := range config.Show(fields, &c) {
		set[s.Key] = true
	}

	isNATS, remote := store.Kind == config.NATS, store.Kind.IsRedis() || store.Kind == config.NATS
	for _, only := range []struct {
		ok      bool
		allowed string
		keys    []string
	}{
		{remote, "with redis and nats stores", []string{"storeUsername", "storePassword", "storePasswordFile"}},
		{isNATS, "with nats:// and tls://", []string{"storeToken", "storeTokenFile", "storeCredsFile", "storeNkeyFile"}},
		{
			store.Kind == config.RedisSentinel, "with redis+sentinel:// and rediss+sentinel://",
			[]string{"storeSentinelUsername", "storeSentinelPassword", "storeSentinelPasswordFile"},
		},
		{isNATS || store.TLS, "with nats:// and the schemes over TLS", []string{"storeCAFile", "storeCertFile", "storeKeyFile"}},
	} {
		for _, key := range only.keys {
			if set[key] && !only.ok {
				refuse(key, fmt.Sprintf("is set, but the store is %s", storeName(store)), only.allowed)
			}
		}
	}

	for _, pair := range [][2]string{
		{"storePassword", "storePasswordFile"},
		{"storeSentinelPassword", "storeSentinelPasswordFile"},
		{"the URL", "storeUsername"},
		{"the URL", "storePassword"},
		{"the URL", "storePasswordFile"},
	} {
		if set[pair[0]] && set[pair[1]] {
			refuse(pair[1], "is set, and so is the same in "+pair[0], "one of them")
		}
	}
	for _, user := range [][3]string{
		{"storeUsername", "storePassword", "storePasswordFile"},
		{"storeSentinelUsername", "storeSentinelPassword", "storeSentinelPasswordFile"},
	} {
		if set[user[0]] && !set[user[1]] && !set[user[2]] {
			refuse(user[0], "is set without a password", "with "+user[1]+" or "+user[2])
		}
	}
	if isNATS {
		faults = append(faults, onlyOneLogin(set)...)
	}
	if set["storeCertFile"] != set["storeKeyFile"] {
		refuse("storeCertFile and storeKeyFile", "are set one without the other", "both or none")
	}
	return faults
}

// onlyOneLogin rejects a second way to log in to NATS.
func onlyOneLogin(set map[string]bool) []error {
	user := "the URL"
	for _, key := range []string{"storeUsername", "storePassword", "storePasswordFile"} {
		if set[key] {
			set[user] = true
		}
	}
	var faults []error
	first := ""
	for _, key := range []string{user, "storeToken", "storeTokenFile", "storeCredsFile", "storeNkeyFile"} {
		switch {
		case !set[key]:
		case first == "":
			first = key
		default:
			if first == user {
				first = "a user name or password"
			}
			faults = append(faults, &config.FieldError{
				Field: key, Problem: fmt.Sprintf("is set, and so is %s", first), Allowed: "one way to log in",
			})
		}
	}
	return faults
}

// storeName names the kind of store in an error.
func storeName(store *config.StoreURL) string {
	name := string(store.Kind)
	if store.TLS {
		name += " over TLS"
	}
	return name
}

// limitOK reports whether one field of a limit is in range by itself.
func limitOK(l throttle.Limit) bool { return l.Validate() == nil }
