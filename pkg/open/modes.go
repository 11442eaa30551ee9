package open

import (
	"strconv"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// setMode sets the mode of a ramp by Numaflow's name for it, with its settings. It rejects unknown names and settings, and 0, which would
// be the default.
func setMode(c *Config, name string, settings [][2]string) bool {
	var threshold, down int
	var coolDown time.Duration
	for _, s := range settings {
		ok := false
		switch {
		case s[0] == "thresholdPercentage" && (name == "onlyIfUsed" || name == "goBackN"):
			threshold, ok = percent(s[1])
		case s[0] == "rampDownPercentage" && name == "goBackN":
			down, ok = percent(s[1])
		case s[0] == "coolDownPeriod" && name == "goBackN":
			d, err := time.ParseDuration(s[1])
			coolDown, ok = d, err == nil && d > 0
		}
		if !ok {
			return false
		}
	}
	switch name {
	case "scheduled":
		c.Limit.Mode = throttle.Scheduled{}
	case "relaxed":
		c.Limit.Mode = throttle.Relaxed{}
	case "onlyIfUsed":
		c.Limit.Mode = throttle.OnlyIfUsed{ThresholdPercentage: threshold}
	case "goBackN":
		c.Limit.Mode = throttle.GoBackN{ThresholdPercentage: threshold, CoolDownPeriod: coolDown, RampDownPercentage: down}
	default:
		return false
	}
	return true
}

func percent(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 1 && n <= 100 && strconv.Itoa(n) == text
}

// showMode returns the mode in the form of setMode; empty for none.
func showMode(c *Config) string {
	if c.Limit.Mode == nil {
		return ""
	}
	return c.Limit.Mode.String()
}

// modesForm returns the JSON schema of a mode: its name, a mapping from the name to its settings, or that mapping as a text.
func modesForm() config.Schema {
	percent := config.Schema{"anyOf": []any{
		config.Schema{"type": "integer", "minimum": 1, "maximum": 100}, config.Schema{"type": "string", "pattern": "^([1-9][0-9]?|100)$"},
	}}
	threshold := config.Schema{"thresholdPercentage": percent}
	all := config.Schema{
		"thresholdPercentage": percent, "rampDownPercentage": percent, "coolDownPeriod": config.DurationForm(time.Second, longestTTL),
	}
	properties := config.Schema{}
	for name, settings := range map[string]config.Schema{"scheduled": {}, "relaxed": {}, "onlyIfUsed": threshold, "goBackN": all} {
		properties[name] = config.Schema{"type": []any{"object", "null"}, "additionalProperties": false, "properties": settings}
	}
	return config.Schema{"anyOf": []any{
		config.Schema{"enum": []any{"scheduled", "relaxed", "onlyIfUsed", "goBackN"}},
		config.Schema{"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false, "properties": properties},
		config.Schema{"type": "string", "pattern": ":"},
	}}
}
