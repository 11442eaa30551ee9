package main

import (
	"fmt"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
)

// spentOutcome returns the outcome of a message that must not wait for a spent budget.
func spentOutcome() outcome {
	return outcome{verdict: stop, code: "budget_spent", text: fmt.Sprint(account.ErrBudget), err: account.ErrBudget}
}
