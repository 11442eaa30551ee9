package mapper

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
)

// settings is what the options say.
type settings struct {
	cost          func(keys []string, d mapsdk.Datum) int    // nil: 1
	tag           func(keys []string, d mapsdk.Datum) string // nil: none
	maxWait       time.Duration                              // 0: no bound
	onDenied      Action
	exemptDropped bool
	log           *slog.Logger // nil: slog.Default()
	perOutput     bool
	direct        bool
}

// Check returns everything that is wrong with the options for Wrap and WrapBatch,
// in one error, which these would panic with; nil for nothing. It is for options
// that come from a configuration.
func Check(opts ...Option) error {
	s := newSettings(asStreamOptions(opts))
	return s.validate()
}

// CheckStream is Check for WrapStream.
func CheckStream(opts ...StreamOption) error {
	s := newSettings(opts)
	return s.validate()
}

func asStreamOptions(opts []Option) []StreamOption {
	all := make([]StreamOption, len(opts))
	for i, opt := range opts {
		all[i] = opt
	}
	return all
}

func newSettings(opts []StreamOption) settings {
	var s settings
	for _, opt := range opts {
		if opt != nil {
			opt.applyStream(&s)
		}
	}
	return s
}

func (s *settings) validate() error {
	var faults []error
	bad := func(field string, value any, allowed string) {
		faults = append(faults, fmt.Errorf("mapper: %s is %v, allowed: %s", field, value, allowed))
	}
	if s.onDenied.fault != nil {
		faults = append(faults, s.onDenied.fault)
	}
	switch {
	case s.maxWait < 0:
		bad("WithMaxWait", s.maxWait, "0 (no bound) or more")
	case s.perOutput && s.maxWait > 0:
		bad("WithMaxWait", s.maxWait, "0 with PerOutput, for an answer that has begun cannot be taken back")
	case s.maxWait > 0 && s.onDenied.waits():
		bad("WithMaxWait", s.maxWait, "0 without an OnDenied that ends the wait")
	}
	switch {
	case s.onDenied.waits():
	case s.perOutput:
		bad("OnDenied", s.onDenied.name, "Wait with PerOutput, for an answer that has begun cannot be taken back")
	case s.maxWait == 0:
		bad("OnDenied", s.onDenied.name, "Wait without a WithMaxWait above 0")
	}
	if s.direct && s.perOutput {
		bad("Direct", "set", "not with PerOutput, which has to see the outputs")
	}
	if s.direct && s.exemptDropped {
		bad("Direct", "set", "not with ExemptDropped, which has to see the outputs")
	}
	return errors.Join(faults...)
}
