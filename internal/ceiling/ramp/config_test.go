package ramp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConfigValidate(t *testing.T) {
	usual := Config{Min: 1, Max: 100, Per: time.Second, RampUpDuration: time.Minute, TTL: DefaultTTL}
	for _, tc := range []struct {
		name string
		edit func(*Config)
		bad  []string // what the error must name; none for a valid Config
	}{
		{"usual", func(*Config) {}, nil},
		{"largest", func(c *Config) { c.Min, c.Max, c.Per, c.RampUpDuration, c.TTL = 1e9, 1e9, maxPer, maxDuration, maxWait }, nil},
		{"smallest", func(c *Config) { c.Max, c.Per, c.RampUpDuration, c.TTL = 1, minPer, minDuration, minWait }, nil},
		{"onlyIfUsed", func(c *Config) { c.Mode, c.ThresholdPercentage = OnlyIfUsed, 100 }, nil},
		{"goBackN", func(c *Config) { c.Mode, c.CoolDownPeriod, c.RampDownPercentage = GoBackN, DefaultCoolDownPeriod, 100 }, nil},
		{"no max", func(c *Config) { c.Max = 0 }, []string{"max is 0, allowed: 1 to 1000000000"}},
		{"max too large", func(c *Config) { c.Max = 1e9 + 1 }, []string{"max is 1000000001"}},
		{"no min", func(c *Config) { c.Min = 0 }, []string{"min is 0, allowed: 1 to max"}},
		{"min above max", func(c *Config) { c.Min = 101 }, []string{"min is 101"}},
		{"per", func(c *Config) { c.Per = maxPer + 1 }, []string{"per is 744h0m0.000000001s, allowed: 1ms to 744h"}},
		{"no duration", func(c *Config) { c.RampUpDuration = 0 }, []string{"rampUpDuration is 0s, allowed: 1ms to 744h"}},
		{"ttl too short", func(c *Config) { c.TTL = minWait - 1 }, []string{"ttl is 999.999999ms, allowed: 1s to 24h"}},
		{"ttl too long", func(c *Config) { c.TTL = maxWait + 1 }, []string{"ttl is 24h"}},
		{"unknown mode", func(c *Config) { c.Mode = 4 }, []string{"mode is mode(4), allowed: relaxed, scheduled, onlyIfUsed, goBackN"}},
		{"threshold", func(c *Config) { c.Mode, c.ThresholdPercentage = OnlyIfUsed, 101 }, []string{"thresholdPercentage is 101, allowed: 0 to 100"}},
		{"threshold of another mode", func(c *Config) { c.ThresholdPercentage = 50 }, []string{"thresholdPercentage is 50, allowed: only with"}},
		{
			"goBackN", func(c *Config) { c.Mode, c.RampDownPercentage = GoBackN, -1 },
			[]string{"rampDownPercentage is -1, allowed: 0 to 100", "coolDownPeriod is 0s, allowed: 1s to 24h"},
		},
		{
			"of goBackN only", func(c *Config) { c.Mode, c.CoolDownPeriod, c.RampDownPercentage = Scheduled, time.Second, 1 },
			[]string{"coolDownPeriod is 1s, allowed: only with goBackN", "rampDownPercentage is 1, allowed: only with goBackN"},
		},
		{
			"all faults at once", func(c *Config) { *c = Config{Max: -1, Mode: -1} },
			[]string{"max is -1", "min is 0", "per is 0s", "rampUpDuration is", "ttl is", "mode is"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := usual
			tc.edit(&c)
			err := c.Validate()
			if tc.bad == nil {
				require.NoError(t, err)
				return
			}
			for _, says := range tc.bad {
				require.ErrorContains(t, err, says)
			}
		})
	}
}
