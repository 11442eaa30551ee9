// Package config reads settings from a YAML file and from the environment, and
// takes store URLs apart.
//
// # One table
//
// A Field describes one setting: its name, what is allowed, its default, what it
// means, and where its value lies in the caller's struct. Everything else follows
// from a table of fields: the key in the file (the name), the environment
// variable (Variable), the check of a struct that was filled by hand (Check), the
// printed form without secrets (Show), and the reference in the documentation
// (Table).
//
// # Strict, and all at once
//
// Nothing is ignored: a key or a variable that names no setting, a setting given
// twice, and a value of the wrong form are faults. Load and Check return every fault there is, each one a *FieldError of one
// line, in an order that does not change from run to run.
//
// # Secrets
//
// No fault shows the value of a secret. Of a store URL it omits every part that
// could hold one: the user info, the values of unknown parameters, an invalid
// host or port. Text that is not a URL is omitted. ShowStore prints a store URL
// without these parts.
package config
