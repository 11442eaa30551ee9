package main

import (
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/program"
)

// rampFields are the library's own settings of a ramp. They apply to the limit on tokens, or without one to that on requests. The library
// documents them.
var rampFields = func() []config.Field[*settings] {
	ramp := opening.LimitFields(poolOf, "min", "rampUpDuration", "modes", "resumedRampUp", "ttl")
	for i := range ramp {
		ramp[i].Allowed = strings.ReplaceAll(ramp[i].Allowed, "1 to `max`, with `hard` at least `max` / `burst`", "1 to that limit")
	}
	return ramp
}()

// limitFault reports the fault of one of the limits per minute, under its setting. most is the setting of the limit.
func limitFault(err error, most string, bad program.Complaint) {
	key, problem, allowed := opening.LimitFault(err)
	if key == "max" {
		key = most
	}
	bad(key, problem, strings.ReplaceAll(allowed, "max", most))
}
