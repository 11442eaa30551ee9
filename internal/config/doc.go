// Package config reads settings and quotas from YAML and from the environment, and parses store URLs.
//
// # One table
//
// A Field describes one setting: its name, allowed values, default, meaning, and the place of its value in the caller's struct. Everything
// else follows from a table of fields: the key in the file (the name), the environment variable (Variable), the check of a struct filled by
// hand (Check), the printed form without secrets (Show), and the reference in the documentation (Table).
//
// # Strict, and all at once
//
// Nothing is ignored: a key or a variable that names no setting, a setting given twice, and a value of the wrong form are faults. Load and
// Check return all faults, each one a *FieldError of one line, in a stable order.
//
// # Quotas
//
// ParseQuotas reads quotas, from a text of its own or as a setting. Each fault has its line.
//
//	tags:
//	  acme: {reserved: 200, total: 400, class: interactive, budgets: [{amount: 5e6, per: day}]}
//	match:
//	  - {tag: "free/*", total: 10, per: 1m, class: batch, weight: 1}
//	other: {total: 50}
//
// # Secrets
//
// No fault shows the value of a secret. It omits every part of a store URL that could contain one: the user info, the values of unknown
// parameters, an invalid host or port. Text that is not a URL is omitted. ShowStore prints a store URL without these parts.
package config
