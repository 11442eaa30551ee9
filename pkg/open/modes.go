package open

import (
	"strconv"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// setMode sets the mode of a ramp by Numaflow's name for it, with its settings. It
// refuses what it does not know, and 0, which would be the default.
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

// showMode is the mode as setMode takes it; empty for none.
func showMode(c *Config) string {
	if c.Limit.Mode == nil {
		return ""
	}
	return c.Limit.Mode.String()
}
