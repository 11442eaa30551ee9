package opening

import (
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const allowedModes = "one of `scheduled`, `relaxed`, `onlyIfUsed` and `goBackN`, each with its settings in a mapping: " +
	"`thresholdPercentage` and `rampDownPercentage`, 1 to 100, and `coolDownPeriod`, `1s` to `24h`"

// modeNames are Numaflow's names of the modes of a ramp, and how many of modeFields each has.
var modeNames, modeSettings = []string{"scheduled", "relaxed", "onlyIfUsed", "goBackN"}, []int{0, 0, 1, 3}

// modeFields are the settings of a mode, which is read as a RampGoBackN. 0 is not allowed: it would be the default.
var modeFields = []field{
	percentage("thresholdPercentage", func(m *throttle.RampGoBackN) *int { return &m.ThresholdPercentage }),
	percentage("rampDownPercentage", func(m *throttle.RampGoBackN) *int { return &m.RampDownPercentage }),
	{
		Key: "coolDownPeriod", Allowed: "a duration, `1s` to `24h`", Form: config.DurationForm(time.Second, longestTTL),
		Value: ofMode(func(m *throttle.RampGoBackN, text string) bool {
			d, err := time.ParseDuration(text)
			m.CoolDownPeriod = d
			return err == nil && d >= time.Second && d <= longestTTL
		}),
	},
}

func percentage(key string, at func(*throttle.RampGoBackN) *int) field {
	return field{
		Key: key, Allowed: "a whole number, 1 to 100",
		Value: ofMode(func(m *throttle.RampGoBackN, text string) (ok bool) {
			*at(m), ok = config.WholeNumber(text)
			return ok && *at(m) >= 1 && *at(m) <= 100
		}),
		Form: config.Schema{"anyOf": []any{
			config.Schema{"type": "integer", "minimum": 1, "maximum": 100}, config.Schema{"type": "string", "pattern": "^([1-9][0-9]?|100)$"},
		}},
	}
}

func ofMode(set func(m *throttle.RampGoBackN, text string) bool) config.Value[*Config] {
	return config.Custom(func(c *Config, text string) bool {
		m, _ := c.Limit.Mode.(throttle.RampGoBackN)
		ok := set(&m, text)
		c.Limit.Mode = m
		return ok
	})
}

// readMode reads the mode of a ramp: its name, or a mapping from the name to its settings.
func readMode(c *Config, n *yaml.Node) []config.BlockFault {
	name, line, settings := n.Value, n.Line, (*yaml.Node)(nil)
	if n.Kind != yaml.ScalarNode {
		entries, faults := config.Entries(n, "modes", 1, allowedModes)
		if len(entries) != 1 {
			return append(faults, config.BlockFault{Field: "modes", Problem: "is not one mode", Allowed: allowedModes, Line: n.Line})[:1]
		}
		name, line, settings = entries[0].Name, entries[0].Line, entries[0].Value
	}
	i := slices.Index(modeNames, name)
	if i < 0 {
		problem := fmt.Sprintf("is %.60q", name) + config.DidYouMean(name, modeNames)
		return []config.BlockFault{{Field: "modes", Problem: problem, Allowed: allowedModes, Line: line}}
	}
	c.Limit.Mode = throttle.RampGoBackN{}
	if settings != nil && !config.IsNull(settings) {
		if faults := config.Mapping(modeFields[:modeSettings[i]], settings, "modes."+name, c); len(faults) > 0 {
			return faults
		}
	}
	m, _ := c.Limit.Mode.(throttle.RampGoBackN)
	c.Limit.Mode = []throttle.Mode{
		throttle.RampScheduled{}, throttle.RampRelaxed{}, throttle.RampOnlyIfUsed{ThresholdPercentage: m.ThresholdPercentage}, m,
	}[i]
	return nil
}

// showMode returns the mode in the form of readMode; empty for none.
func showMode(c *Config) string {
	if c.Limit.Mode == nil {
		return ""
	}
	return c.Limit.Mode.String()
}

// modesForm returns the JSON schema of a mode: its name, a mapping from the name to its settings, or that mapping as a text.
func modesForm() config.Schema {
	properties := config.Schema{}
	for i, name := range modeNames {
		properties[name] = config.MappingForm(modeFields[:modeSettings[i]])
	}
	return config.Schema{"anyOf": []any{
		config.Schema{"enum": modeNames},
		config.Schema{"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false, "properties": properties},
		config.Schema{"type": "string", "pattern": ":"},
	}}
}
