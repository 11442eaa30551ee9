package throttle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/ramp"
)

// A Mode says when the ceiling of a ramp rises. Every move is by the slope,
// (Max - Min) / RampUpDuration, for each second. The modes and their names are
// Numaflow's: RampScheduled, RampRelaxed, RampOnlyIfUsed and RampGoBackN; nil is RampRelaxed.
type Mode interface {
	// String returns the mode as configurations have it.
	String() string
	// configure sets the mode and its settings, with their defaults.
	configure(c *ramp.Config)
}

// RampScheduled rises with time, whatever is used.
type RampScheduled struct{}

// RampRelaxed rises after every second with traffic, and stands still otherwise.
type RampRelaxed struct{}

// RampOnlyIfUsed rises after every second in which at least a part of the available tokens was used, and stands still otherwise.
type RampOnlyIfUsed struct {
	// ThresholdPercentage is that part: 1 to 100. Defaults to 50.
	ThresholdPercentage int
}

// RampGoBackN rises as [RampOnlyIfUsed] does, falls by one slope after a second with traffic
// below the threshold, and falls further the longer nothing is used at all.
type RampGoBackN struct {
	// ThresholdPercentage is the part of the available tokens that must be used: 1 to 100. Defaults to 50.
	ThresholdPercentage int
	// CoolDownPeriod is how long nothing may be used without a penalty: 1 s to 24 h.
	// Defaults to five seconds.
	CoolDownPeriod time.Duration
	// RampDownPercentage is how much of the slope every second of a longer gap costs,
	// counted from the last second with traffic: 1 to 100. Defaults to 50.
	RampDownPercentage int
}

// String returns "scheduled".
func (RampScheduled) String() string { return ramp.Scheduled.String() }

// String returns "relaxed".
func (RampRelaxed) String() string { return ramp.Relaxed.String() }

// String returns the mode with the settings that are given, as a line of YAML.
func (m RampOnlyIfUsed) String() string {
	return withSettings(ramp.OnlyIfUsed, setting("thresholdPercentage", m.ThresholdPercentage))
}

// String returns the mode with the settings that are given, as a line of YAML.
func (m RampGoBackN) String() string {
	return withSettings(ramp.GoBackN, setting("coolDownPeriod", m.CoolDownPeriod),
		setting("rampDownPercentage", m.RampDownPercentage), setting("thresholdPercentage", m.ThresholdPercentage))
}

// setting returns a setting of a mode; empty if it has its default.
func setting[T comparable](name string, value T) string {
	var byDefault T
	if value == byDefault {
		return ""
	}
	return fmt.Sprintf("%s: %v", name, value)
}

// withSettings returns the name of a mode with the settings that are given.
func withSettings(m ramp.Mode, settings ...string) string {
	settings = slices.DeleteFunc(settings, func(s string) bool { return s == "" })
	if len(settings) == 0 {
		return m.String()
	}
	return fmt.Sprintf("{%s: {%s}}", m, strings.Join(settings, ", "))
}

func (RampScheduled) configure(c *ramp.Config) { c.Mode = ramp.Scheduled }
func (RampRelaxed) configure(c *ramp.Config)   { c.Mode = ramp.Relaxed }

func (m RampOnlyIfUsed) configure(c *ramp.Config) {
	c.Mode = ramp.OnlyIfUsed
	c.ThresholdPercentage = cmp.Or(int64(m.ThresholdPercentage), ramp.DefaultThresholdPercentage)
}

func (m RampGoBackN) configure(c *ramp.Config) {
	c.Mode = ramp.GoBackN
	c.ThresholdPercentage = cmp.Or(int64(m.ThresholdPercentage), ramp.DefaultThresholdPercentage)
	c.RampDownPercentage = cmp.Or(int64(m.RampDownPercentage), ramp.DefaultRampDownPercentage)
	c.CoolDownPeriod = cmp.Or(m.CoolDownPeriod, ramp.DefaultCoolDownPeriod)
}

// Ramps reports whether the limit ramps up.
func (l Limit) Ramps() bool { return l.Max > 0 && (l.Min != 0 || l.RampUpDuration != 0) }

// rampConfig returns the limit's ramp in the form of package internal/ceiling/ramp. The limit must be valid, and ramp.
func (l Limit) rampConfig() ramp.Config {
	l = l.withDefaults()
	c := ramp.Config{
		Min: int64(l.Min), Max: int64(l.Max), Per: l.Per, RampUpDuration: l.RampUpDuration,
		ResumedRampUp: l.ResumedRampUp, TTL: l.TTL,
	}
	if l.Mode != nil {
		l.Mode.configure(&c)
	}
	return c
}

// withRampDefaults fills in the defaults of a limit that ramps.
func (l Limit) withRampDefaults() Limit {
	if l.Ramps() {
		l.Min = cmp.Or(l.Min, ramp.DefaultMin)
		l.RampUpDuration = cmp.Or(l.RampUpDuration, ramp.DefaultRampUpDuration)
		l.Mode = cmp.Or[Mode](l.Mode, RampRelaxed{})
		l.TTL = cmp.Or(l.TTL, ramp.DefaultTTL)
	}
	return l
}

// validateRamp returns an error for every field of the ramp that is out of bounds.
// Without Max each field is judged by itself.
func (l Limit) validateRamp() []error {
	var errs []error
	set := l.Min != 0 || l.RampUpDuration != 0
	if l.Max > 0 && !set {
		return l.validateNoRamp()
	}
	whole := l
	if whole.Max = min(l.Max, maxTokens); whole.Max < 1 {
		whole.Max = maxTokens // max is reported separately
	}
	whole.RampUpDuration = cmp.Or(max(whole.RampUpDuration, -1), ramp.DefaultRampUpDuration)
	if err := whole.rampConfig().Validate(); err != nil {
		var list interface{ Unwrap() []error }
		if errors.As(err, &list) {
			errs = append(errs, list.Unwrap()...)
		}
	}
	if d := l.withDefaults(); len(errs) == 0 && d.Min < d.leastHard() {
		errs = append(errs, fmt.Errorf("limit: min is %d, allowed: at least max / burst with hard, which is %d: "+
			"the burst of a lower ceiling is not worth a token", d.Min, d.leastHard()))
	}
	return errs
}

// validateNoRamp returns an error for every ramp setting of a limit that has no ramp.
func (l Limit) validateNoRamp() (errs []error) {
	for _, f := range []struct {
		set   bool
		field string
		value any
	}{{l.Mode != nil, "mode", l.Mode}, {l.ResumedRampUp, "resumedRampUp", l.ResumedRampUp}, {l.TTL != 0, "ttl", l.TTL}} {
		if f.set {
			errs = append(errs, fmt.Errorf("limit: %s is %v, allowed: only with min or rampUpDuration", f.field, f.value))
		}
	}
	return errs
}
