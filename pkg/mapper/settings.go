package mapper

import (
	"fmt"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
)

// settings holds the values that the options set.
type settings struct {
	admission.Settings[mapsdk.Datum, mapsdk.Messages]

	perOutput, direct bool
}

// throttled is the common part of the three wrappers.
type throttled = admission.Wrapper[mapsdk.Datum, mapsdk.Messages]

// Check returns all faults of the options for Wrap and [WrapBatch] in one error, the one that these panic with, or nil. It is for options
// that come from a configuration.
func Check(opts ...Option) error { return newSettings(opts).check() }

// CheckStream is Check for [WrapStream].
func CheckStream(opts ...StreamOption) error { return newSettings(opts).check() }

func newSettings[O StreamOption](opts []O) settings {
	var s settings
	for _, opt := range opts {
		if any(opt) != nil {
			opt.applyStream(&s)
		}
	}
	return s
}

func (s settings) check() error {
	const begun = "with PerOutput, for an answer that has begun cannot be taken back"
	var faults []string
	if s.perOutput && s.MaxWait > 0 {
		faults = append(faults, fmt.Sprintf("WithMaxWait is %s, allowed: 0 %s", s.MaxWait, begun))
		s.MaxWait = 0
	}
	if s.perOutput && !s.OnDenied.Waits() {
		faults = append(faults, fmt.Sprintf("OnDenied is %s, allowed: Wait %s", s.OnDenied, begun))
		s.OnDenied = action{Faults: s.OnDenied.Faults}
	}
	if s.direct && s.perOutput {
		faults = append(faults, "Direct is set, allowed: not with PerOutput, which has to see the outputs")
	}
	if s.direct && s.ExemptDropped {
		faults = append(faults, "Direct is set, allowed: not with ExemptDropped, which has to see the outputs")
	}
	return s.Check("mapper", "WithMaxWait", "Nack, Drop, Forward or DenyFunc", faults...)
}
