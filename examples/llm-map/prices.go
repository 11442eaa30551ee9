package main

import (
	"fmt"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/program"
)

// checkMoney finds prices and budgets that cannot be kept. models are the called models.
func (s *settings) checkMoney(models []string, r *config.Reading, bad program.Complaint) {
	faults := account.CheckMoney(s.Prices, s.Budget, s.BudgetQuotas(), !s.batches())
	r.Note(faults...)
	if len(faults) > 0 || s.Budget == (account.Budget{}) && !s.BudgetQuotas().Given() {
		return // other faults follow from them
	}
	slices.Sort(models)
	for _, model := range slices.Compact(models) {
		if _, known := s.Prices[model]; !known && model != "" {
			bad("prices", fmt.Sprintf("has none of the model %q, whose calls would cost nothing", model), "a price for each model, with a budget")
		}
	}
	r.Note((&account.Config{Pool: s.Pool}).CheckPools(s.Budget)...)
}
