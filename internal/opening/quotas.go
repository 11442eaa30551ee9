package opening

import (
	"encoding/json"
	"fmt"
	"strings"

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

// QuotasOf are quotas of limits, by their settings.
type QuotasOf struct {
	Limits map[string]throttle.Quotas

	text string // as they were set
}

// ManyQuotasField is QuotasField for a program with several limits, whose quotas may name them. main are the quotas that name none.
func ManyQuotasField[C any](
	limits []config.QuotaLimit, allowed, doc string, main func(C) *throttle.Quotas, of func(C) *QuotasOf,
) config.Field[C] {
	f := QuotasField(allowed, doc, main)
	f.Form, f.Example = config.ManyQuotasForm(limits), "{tags: {acme: {requestsPerMinute: 50, tokensPerMinute: {reserved: 20000}}}}"
	f.Value = config.Block(func(c C, n *yaml.Node) (faults []config.BlockFault) {
		q := QuotasOf{text: config.OneLine(n)}
		*main(c), q.Limits, faults = config.ReadManyQuotas(n, limits)
		if *of(c) = q; len(q.Limits) == 0 {
			*of(c) = QuotasOf{}
		}
		return faults
	}, func(c C) string {
		if text := of(c).text; text != "" {
			return text
		}
		return showQuotas(*main(c))
	})
	return f
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
	return append(quotaFaults(c.Limit.CheckQuotas(c.Quotas)), checkQuotaPool(c)...)
}

// checkQuotaPool returns the faults of a pool in which tags have quotas.
func checkQuotaPool(c *Config) (faults []error) {
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

// CheckQuotasOf is CheckQuotas for the quotas of the limit of another setting, in a pool like c's.
func CheckQuotasOf(key string, of throttle.Limit, q throttle.Quotas, c *Config) (faults []error) {
	pool := *c
	pool.Limit, pool.Quotas = of, q
	return faultsOf(key, CheckQuotas(&pool))
}

// CheckSlotQuotasOf is CheckQuotasOf for a limit on calls in flight.
func CheckSlotQuotasOf(key string, slots int, q throttle.Quotas, c *Config) (faults []error) {
	return faultsOf(key, append(quotaFaults(q.ValidateSlots(slots)), checkQuotaPool(c)...))
}

// faultsOf says that faults are those of the quotas of a limit.
func faultsOf(key string, of []error) (faults []error) {
	for _, err := range of {
		problem := "of " + key + " cannot be kept: " + strings.TrimPrefix(err.Error(), "numathrottle: ")
		faults = append(faults, &config.FieldError{Field: "quotas", Problem: problem})
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
