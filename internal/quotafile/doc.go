// Package quotafile reads quotas from YAML, strictly: a name that is not known, one that is given twice, and a value of the
// wrong form are faults, each with its line. All faults are told at once, and none is ignored.
//
//	tags:
//	  acme: {reserved: 200, total: 400, class: interactive, budgets: [{amount: 5e6, per: day}]}
//	match:
//	  - {tag: "free/*", total: 10, per: 1m, class: batch, weight: 1}
//	other: {total: 50}
//
// It stands beside package quota because the core reads no configuration.
package quotafile
