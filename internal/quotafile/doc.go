// Package quotafile reads quotas from YAML, strictly: unknown names, duplicates, and values of the wrong form are faults, each with its
// line. It reports all faults at once, and ignores none.
//
//	tags:
//	  acme: {reserved: 200, total: 400, class: interactive, budgets: [{amount: 5e6, per: day}]}
//	match:
//	  - {tag: "free/*", total: 10, per: 1m, class: batch, weight: 1}
//	other: {total: 50}
//
// It is separate from package quota because the core reads no configuration.
package quotafile
