// Package quota says what the tags of a limit may use: tenants, models and keys inside one limit.
//
// A Quota is what one tag has reserved, what it may use in total, and how it stands with the
// others. Quotas are those of a whole limit. Both are plain values: nothing here counts, waits or
// talks to a store. Package limit's words stand for what a limiter and its pool tell each other of
// tags; the till at the store is package driver's.
package quota
