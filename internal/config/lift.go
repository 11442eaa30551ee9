package config

import "go.yaml.in/yaml/v3"

// Lift converts fields of an A to fields of a B that contains an A. So a program can have them in one table with its own settings. at
// returns the address of the A.
func Lift[A, B any](fields []Field[A], at func(*B) *A) []Field[B] {
	lifted := make([]Field[B], len(fields))
	for i, f := range fields {
		lifted[i] = Field[B]{
			Key: f.Key, Prefix: f.Prefix, Shared: f.Shared, Allowed: f.Allowed, Default: f.Default, Doc: f.Doc,
			Topic: f.Topic, Unit: f.Unit, Example: f.Example, Form: f.Form, Value: liftValue(f.Value, at),
		}
		if inRange := f.Range; inRange != nil {
			lifted[i].Range = func(b *B) bool { return inRange(at(b)) }
		}
	}
	return lifted
}

func liftValue[A, B any](v Value[A], at func(*B) *A) Value[B] {
	lifted := Value[B]{
		kind: v.kind, secret: v.secret, hidden: v.hidden, mapping: v.mapping, hint: v.hint, form: v.form, low: v.low, high: v.high,
		set: func(b *B, text string) bool { return v.set(at(b), text) },
		get: func(b *B) string { return v.get(at(b)) },
	}
	if v.block != nil {
		lifted.block = func(b *B, n *yaml.Node) []BlockFault { return v.block(at(b), n) }
	}
	if v.check != nil {
		lifted.check = func(b *B) bool { return v.check(at(b)) }
	}
	if v.problem != nil {
		lifted.problem = func(b *B) string { return v.problem(at(b)) }
	}
	return lifted
}
