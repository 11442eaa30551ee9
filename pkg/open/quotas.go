package open

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/quota/quotafile"
)

// setQuotas reads the setting quotas.
func setQuotas(c *Config, n *yaml.Node) (faults []config.BlockFault) {
	q, wrong := quotafile.Decode(n)
	for _, f := range wrong {
		faults = append(faults, config.BlockFault{Field: f.Field, Problem: f.Problem, Allowed: f.Allowed, Line: f.Line})
	}
	c.Quotas = q
	return faults
}

// showQuotas is the setting in one line, as setQuotas takes it; empty for none.
func showQuotas(c *Config) string {
	if c.Quotas.None() {
		return ""
	}
	text, err := json.Marshal(c.Quotas)
	if err != nil { // for a name that is no text, which is a fault by itself
		return "(not shown)"
	}
	return string(text)
}

// checkQuotas returns what is wrong with the quotas for the limit. The limit is valid by itself.
func (c Config) checkQuotas() []error {
	if c.Quotas.None() {
		return nil
	}
	var faults []error
	for _, err := range config.Split(c.Quotas.Validate(c.Limit.Max, c.Limit.Per)) {
		faults = append(faults, fmt.Errorf("numathrottle: %w", err))
	}
	if c.Policy == PolicyEven {
		faults = append(faults, &config.FieldError{
			Field: "policy", Problem: "is even, but quotas divide the limit by what tags ask for", Allowed: "`fair` with quotas",
		})
	}
	return faults
}
