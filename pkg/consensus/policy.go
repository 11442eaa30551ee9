package consensus

import "github.com/numaproj-contrib/numathrottle/internal/protocol"

// A Policy divides the limit among the live processors: it returns the share that each of rows should hold, in the same order. It is a pure
// function, may be called from any goroutine, and every processor of a pool uses the same one. A policy cannot break the bound: it only says
// what to ask the store for.
type Policy func(rows []RosterRow) []Share

// Even gives every live processor the same share, regardless of demand: the pool-size rule of Numaflow's own throttling.
func Even(rows []RosterRow) []Share { return protocol.Even(rows) }

// Fair is max-min fair by demand: no processor gets more than its demand while another one lacks, and processors that lack get equal shares.
// This is water-filling, as in Bertsekas and Gallager, Data Networks, section 6.5.2. Share without demand is spread evenly. Idle processors
// keep a floor, half a percent of the limit among all. With every processor busy it equals Even.
func Fair(rows []RosterRow) []Share { return protocol.Fair(rows) }
