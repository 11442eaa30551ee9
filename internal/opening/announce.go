package opening

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/duration"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// announce logs once what a newly opened limiter does: a limit is invisible until it is missing.
func (c Config) announce(log *slog.Logger, limit string) {
	effective := c.Effective()
	log.LogAttrs(context.Background(), slog.LevelInfo, "limiter started",
		slog.String("limit", limit), slog.String("pool", c.Pool), slog.String("store", config.ShowStore(effective.Store)),
		slog.String("pod", c.ID), slog.Duration("lease", effective.Lease))
}

// noLimit says that everything passes.
var noLimit = "there is no limit: everything passes at once; set " + config.Variable("max")

// Warnings returns a sentence for each setting that is allowed but probably a mistake. One is no limit although a store or another limit
// setting is set, or in a Numaflow pod. Another is a store in memory in a Kubernetes pod. Open logs the same sentences. Warnings reads only
// variables of Numaflow and Kubernetes.
func (c Config) Warnings() []string {
	var all []string
	switch {
	case c.Limit.Max != 0:
	case c.Store != "":
		all = append(all, "a store is set, but "+noLimit)
	case c.Limit != throttle.Limit{}:
		all = append(all, "settings of a limit are set, but "+noLimit)
	case inNumaflow():
		all = append(all, "this is a pod of Numaflow's, but "+noLimit)
	}
	if store, faults := config.ParseStore(c.Store); len(faults) == 0 && store.Kind == config.Memory && c.Limit.Max != 0 && inPod() {
		all = append(all, "memory:// is not shared between pods: every pod uses the whole limit; set "+config.Variable("store")+
			" to redis:// or nats://, or to static:// for a fixed number of pods")
	}
	return all
}

// describe names a limit in one line.
func describe(l throttle.Limit) string {
	parts := []string{fmt.Sprintf("%d per %s", l.Max, duration.Short(l.Per)), fmt.Sprintf("burst %d", l.Burst)}
	for _, word := range []struct {
		text string
		is   bool
	}{
		{"hard", l.Hard},
		{"strict", l.Strict},
		{"adaptive", l.Adaptive},
		{fmt.Sprintf("from %d on over %s", l.Min, duration.Short(l.RampUpDuration)), l.RampUpDuration > 0},
	} {
		if word.is {
			parts = append(parts, word.text)
		}
	}
	return strings.Join(parts, ", ")
}
