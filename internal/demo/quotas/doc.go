// Command quotas shows how tags with quotas share one limit (make quota-demo). Four processes share it through a store, and draw for five
// tenants and a hog. The tags acme and dash have reservations, and dash's callers soon give up. The tags beta and elle have totals, and
// elle's calls are large. The tag gamma has no quota, and the hog asks for ten times the limit. The command prints a table each second and
// a verdict: every tag gets its reservation, none exceeds its total, and the limit is used.
package main
