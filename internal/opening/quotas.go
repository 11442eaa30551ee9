package opening

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// QuotasField is a setting that holds quotas, for a program of this module whose limit has another name. It checks only their form; allowed
// describes further restrictions.
func QuotasField[C any](allowed, doc string, at func(C) *throttle.Quotas) config.Field[C] {
	return config.Field[C]{
		Key: "quotas", Allowed: "a mapping with `tags`, `match` and `other`, in the variable too; " + allowed, Default: "none", Doc: doc,
		Example: "{tags: {acme: {reserved: 200}}, other: {total: 50}}", Form: config.QuotasForm(),
		Value: config.Block(
			func(c C, n *yaml.Node) (faults []config.BlockFault) {
				*at(c), faults = config.ReadQuotas(n)
				return faults
			},
			func(c C) string { return showQuotas(*at(c)) }),
	}
}

// showQuotas returns the setting in one line; empty for none.
func showQuotas(q throttle.Quotas) string {
	if !q.Given() {
		return ""
	}
	text, err := json.Marshal(q)
	if err != nil { // nothing in it can fail
		return config.Redacted
	}
	return string(text)
}

// CheckQuotas returns the faults of c's quotas for its limit, policy and store, for a program of this module whose limit has another name.
// It does not check those three by themselves.
func CheckQuotas(c *Config) []error {
	if !c.Quotas.Given() {
		return nil
	}
	faults := quotaFaults(c.Limit.CheckQuotas(c.Quotas))
	if c.Policy == PolicyEven {
		faults = append(faults, &config.FieldError{
			Field: "policy", Problem: "is even, but quotas divide the limit by what tags ask for", Allowed: "`fair` with quotas",
		})
	}
	if store, _ := config.ParseStore(c.Store); store.Kind == config.Static {
		faults = append(faults, &config.FieldError{
			Field: "quotas", Problem: "are set, but the store is static", Allowed: "none with static://, whose replicas do not know of each other",
		})
	}
	return faults
}

// quotaFaults are the faults in an error of quotas.
func quotaFaults(err error) (faults []error) {
	for _, err := range config.Split(err) {
		faults = append(faults, &config.SettingError{Key: "quotas", Err: fmt.Errorf("numathrottle: %w", err)})
	}
	return faults
}
