// Package limit has the values that describe limits and their use: quotas, budgets, reasons and pauses. Nothing here counts, waits or talks
// to a store. Package [github.com/numaproj-contrib/numathrottle/pkg/throttle] has aliases for the names that most programs need.
//
// Quotas divide one limit among tags: tenants, models or keys.
//
//	quotas := limit.Quotas{
//		Tags: map[string]limit.Quota{
//			"acme": {Reserved: 200, Total: 400, Weight: 2},
//			"beta": {Budgets: []limit.Budget{{Amount: 1_000_000, Per: "day", Zone: "Europe/Berlin"}}},
//		},
//		Match: []limit.QuotaPattern{{Tag: "trial/*", Quota: limit.Quota{Total: 10}}},
//		Other: limit.Quota{Total: 50},
//	}
//	if err := quotas.Validate(1000, time.Second); err != nil { // the limit is 1,000 tokens per second
//		return err // names every field out of bounds
//	}
//
// # Which fields to set
//
//   - [Quota.Reserved] guarantees a tag its rate, whatever others do.
//   - [Quota.Total] caps the rate of a tag over the whole pool. [Quota.Hard] makes that a promise for any window.
//   - [Quota.Budgets] caps the tokens of a calendar hour, day or month. [Budget.Window] returns the present window.
//   - [Quota.Weight] and [Quota.Class] divide the rest of the limit.
//   - [Quota.Blocked] stops a tag. [Quota.Shadow] counts what a quota would refuse, and refuses nothing.
//
// [Quotas.Find] tells which quota applies to a tag. [Quotas] and [Quota] read and write JSON with the names of the configuration.
//
// A [Reason] says why a call waits or is refused, a [Paused] describes a pause, and a [FieldError] names a value out of bounds.
package limit
