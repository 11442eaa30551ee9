package opening

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// loadFile loads a configuration from a file of this content.
func loadFile(t *testing.T, content string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	t.Setenv("NUMATHROTTLE_CONFIG", path)
	return Load()
}

func TestLoadRamp(t *testing.T) {
	ramp := "max: 20\nmin: 10\nrampUpDuration: 1m\n"
	for _, tc := range []struct {
		modes string
		want  throttle.Mode
	}{
		{"", nil},
		{"modes: {scheduled: {}}", throttle.RampScheduled{}},
		{"modes:\n  relaxed: {}\n", throttle.RampRelaxed{}},
		{"modes: relaxed", throttle.RampRelaxed{}},
		{"modes:\n  onlyIfUsed:\n", throttle.RampOnlyIfUsed{}},
		{"modes: {onlyIfUsed: {thresholdPercentage: 70}}", throttle.RampOnlyIfUsed{ThresholdPercentage: 70}},
		{
			"modes:\n  goBackN:\n    coolDownPeriod: 7s\n    rampDownPercentage: 30\n    thresholdPercentage: 40\n",
			throttle.RampGoBackN{ThresholdPercentage: 40, CoolDownPeriod: 7 * time.Second, RampDownPercentage: 30},
		},
	} {
		c, err := loadFile(t, ramp+"resumedRampUp: true\nttl: 60s\n"+tc.modes)
		require.NoError(t, err, tc.modes)
		require.Equal(t, throttle.Limit{
			Max: 20, Min: 10, RampUpDuration: time.Minute, Mode: tc.want, ResumedRampUp: true, TTL: time.Minute,
		}, c.Limit, tc.modes)
		if tc.want != nil {
			t.Setenv("NUMATHROTTLE_MODES", showMode(&c))
			again, err := loadFile(t, ramp+"modes: scheduled\nresumedRampUp: true\nttl: 60s\n")
			require.NoError(t, err)
			require.Equal(t, c.Limit, again.Limit, "the variable wins, and what is shown can be given")
			require.NoError(t, os.Unsetenv("NUMATHROTTLE_MODES"))
		}
	}
}

func TestLoadRefusesBadRamps(t *testing.T) {
	for _, tc := range []struct {
		content string
		want    []string
	}{
		{"max: 20\nmin: 21", []string{"ramp: min is 21, allowed: 1 to max"}},
		{"max: 20\nmin: -3", []string{`min is "-3"`, "1 to `max`"}},
		{"min: 1\nmodes: exponential", []string{`modes is "exponential"`, ":2), allowed: one of `scheduled`"}},
		{"min: 1\nmodes: gobackn", []string{`modes is "gobackn"; did you mean goBackN?`}},
		{"min: 1\nmodes: {scheduled: {thresholdPercentage: 1}}", []string{"modes.scheduled.thresholdPercentage is not a setting", "allowed: nothing"}},
		{"min: 1\nmodes: {onlyIfUsed: {thresholdPercentage: 0}}", []string{`modes.onlyIfUsed.thresholdPercentage is "0"`, "1 to 100"}},
		{"min: 1\nmodes: {onlyIfUsed: {thresholdPercentage: 101}}", []string{`modes.onlyIfUsed.thresholdPercentage is "101"`, "1 to 100"}},
		{"min: 1\nmodes: {onlyIfUsed: {coolDownPeriod: 5s}}", []string{"modes.onlyIfUsed.coolDownPeriod is not a setting", "one of thresholdPercentage"}},
		{"min: 1\nmodes: {goBackN: {coolDownPeriod: 1ms}}", []string{`modes.goBackN.coolDownPeriod is "1ms"`, "`1s` to `24h`"}},
		{"min: 1\nmodes: {goBackN: {coolDownPeriod: 5s, coolDownPeriod: 6s}}", []string{"modes.goBackN.coolDownPeriod is given twice"}},
		{"min: 1\nmodes: {goBackN: {coolDownPeriod: }}", []string{"modes.goBackN.coolDownPeriod is empty"}},
		{"min: 1\nmodes: {goBackN: 5}", []string{"modes.goBackN is a single value"}},
		{"min: 1\nmodes: {scheduled: {}, relaxed: {}}", []string{"modes has 2 entries", "allowed: at most 1"}},
		{"min: 1\nmodes: {}", []string{"modes is not one mode"}},
		{"min: 1\nmodes: [scheduled]", []string{"modes is a list"}},
		{"max: 20\nttl: 1h", []string{"ttl is 1h0m0s, allowed: only with min or rampUpDuration"}},
		{"max: 20\nmin: 1\nttl: 10ms", []string{`ttl is "10ms"`, "`1s` to `24h`"}},
		{"max: 20\nrampUpDuration: 800h", []string{`rampUpDuration is "800h"`}},
		{"max: 100\nhard: true\nmin: 1", []string{"min is 1, allowed: at least max / burst with hard, which is 10"}},
	} {
		_, err := loadFile(t, tc.content)
		require.Error(t, err, tc.content)
		for _, want := range tc.want {
			require.ErrorContains(t, err, want, tc.content)
		}
	}
}
