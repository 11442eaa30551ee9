// Package whatif replays recorded traffic through the shipped limiter, its quotas and its pool on a virtual clock, and shows what a
// configuration would have done: how much of the limit is used, how long calls wait, which are refused, and what budgets are spent.
//
// Traffic is the recording. Replay runs it against one configuration, in a virtual.World with a throttle.Throttle and a protocol.Processor
// for each pod. Recorded is the same traffic without a limit. A Report compares two results as a table and as a page.
package whatif
