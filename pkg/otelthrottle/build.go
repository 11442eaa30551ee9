package otelthrottle

import (
	"cmp"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/numaproj-contrib/numathrottle/internal/version"
)

// The keys of the attributes of the build, as other programs for Prometheus have them.
const (
	keyVersion  = "version"   // of this module: a tag, a pseudo-version, or "(devel)"
	keyRevision = "revision"  // the commit, or "unknown"
	keyGo       = "goversion" // the version of the toolchain
)

// buildInfo is the one metric that has no limit.
var buildInfo = Instrument{
	Name: "numathrottle.build.info", Kind: gauge, Unit: "{build}", Labels: []string{keyVersion, keyRevision, keyGo},
	Doc: "Always 1: which build of numathrottle this process has, while it has a limit",
}

// built are the attributes of this build.
func built() metric.MeasurementOption {
	b := version.Module()
	return metric.WithAttributeSet(attribute.NewSet(
		attribute.String(keyVersion, b.Version), attribute.String(keyRevision, cmp.Or(b.Revision, "unknown")), attribute.String(keyGo, b.Go)))
}
