package ramp

import (
	"errors"
	"fmt"
	"time"
)

// A Mode says when the ceiling of a ramp moves. Every move is by the slope,
// (max - min) / rampUpDuration, for each second.
type Mode int

// The modes, with Numaflow's names. The zero Mode is Numaflow's default.
const (
	Relaxed    Mode = iota // up after a second with traffic
	Scheduled              // up with time, whatever is used
	OnlyIfUsed             // up after a second in which the threshold was reached
	GoBackN                // as OnlyIfUsed, but down below the threshold and after a long gap
)

// String returns the mode's name in configurations.
func (m Mode) String() string { return [...]string{"relaxed", "scheduled", "onlyIfUsed", "goBackN"}[m] }

// Numaflow's defaults, for readers of a configuration. A Config has no defaults: 0 percent is a setting.
const (
	DefaultMin                 = 1
	DefaultRampUpDuration      = time.Second
	DefaultThresholdPercentage = 50
	DefaultRampDownPercentage  = 50
	DefaultCoolDownPeriod      = 5 * time.Second
	DefaultTTL                 = 180 * time.Second
)

// Bounds of a Config's fields. They keep products of a State's numbers within 64 bits.
const (
	maxTokens   = 1_000_000_000
	minPer      = time.Millisecond
	maxPer      = 31 * 24 * time.Hour
	minDuration = time.Millisecond
	maxDuration = 31 * 24 * time.Hour
	minWait     = time.Second
	maxWait     = 24 * time.Hour // a pool's record may expire after that
)

// A Config is the ramp of one limit, with every default filled in. Durations count in whole microseconds.
type Config struct {
	// Min and Max are the lowest and highest ceiling in tokens per Per, over the
	// whole pool: 1 to 1e9, Min at most Max.
	Min, Max int64
	// Per is the limit's period: 1 ms to 31 days.
	Per time.Duration
	// RampUpDuration is the minimum time from Min to Max: 1 ms to 31 days.
	RampUpDuration time.Duration
	// Mode says when the ceiling moves.
	Mode Mode
	// ThresholdPercentage is how much of the tokens offered in a second must be used for the ceiling to rise: 0 to 100. OnlyIfUsed and
	// GoBackN; else 0.
	ThresholdPercentage int64
	// CoolDownPeriod is how much later than the last second with traffic a second may begin without a penalty for the gap: 1 s to 24 h.
	// GoBackN; else 0.
	CoolDownPeriod time.Duration
	// RampDownPercentage is how much of the slope each second of such a gap costs: 0 to 100. GoBackN; else 0.
	RampDownPercentage int64
	// ResumedRampUp lets an empty pool continue from its last position if a processor returns within TTL. Otherwise it starts from Min.
	ResumedRampUp bool
	// TTL is the longest silence of a pool after which its ceiling still counts: 1 s to 24 h.
	TTL time.Duration
}

// Validate returns an error that names every field out of bounds, or nil. Max and Per must be valid.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, field string, value any, allowed string) {
		if !ok {
			errs = append(errs, fmt.Errorf("ramp: %s is %v, allowed: %s", field, value, allowed))
		}
	}
	check(c.Min >= 1 && c.Min <= c.Max, "min", c.Min, "1 to max")
	check(c.RampUpDuration >= minDuration && c.RampUpDuration <= maxDuration, "rampUpDuration", c.RampUpDuration, "1ms to 744h")
	check(c.TTL >= minWait && c.TTL <= maxWait, "ttl", c.TTL, "1s to 24h")
	check(c.ThresholdPercentage >= 0 && c.ThresholdPercentage <= 100, "thresholdPercentage", c.ThresholdPercentage, "0 to 100")
	check(c.RampDownPercentage >= 0 && c.RampDownPercentage <= 100, "rampDownPercentage", c.RampDownPercentage, "0 to 100")
	if c.Mode == GoBackN {
		check(c.CoolDownPeriod >= minWait && c.CoolDownPeriod <= maxWait, "coolDownPeriod", c.CoolDownPeriod, "1s to 24h")
	}
	return errors.Join(errs...)
}
