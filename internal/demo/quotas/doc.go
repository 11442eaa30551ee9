// Command quotas shows what tags with quotas get of one limit (make quota-demo): four processes share it through a store, and draw for
// five tenants and a hog. acme has a part reserved, and so has dash, whose callers soon give up; beta has a total, and so has elle, whose
// calls are large; gamma is known to nobody, and the hog asks for ten times the limit. It prints a table each second and a verdict:
// nobody is below what is reserved for it, nobody above its total, and the limit is used.
package main
