package operate

import "github.com/numaproj-contrib/numathrottle/internal/protocol"

// The documents of a pool that operators change, and the state that they read.
type (
	// An Override is a limit that the pods of a pool use instead of the configured one: Max tokens per Per, until Until, with the Reason and
	// By that are shown. The zero Override is none.
	Override = protocol.Override
	// A QuotaOrder says until when a changed quota lasts (Until; zero: until it is cleared), who changed it (By) and why (Reason).
	QuotaOrder = protocol.QuotaOrder
	// A SpentChange sets the Tokens spent in the budget window of a Tag that lasts from Start to End, with the By and Reason that are shown.
	SpentChange = protocol.SpentChange
	// An Overview is the state of a pool: the limit in force, the pods, pauses, and documents that cannot be read.
	Overview = protocol.Overview
	// An OverviewRow is one pod of an Overview.
	OverviewRow = protocol.OverviewRow
)
