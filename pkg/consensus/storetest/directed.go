package storetest

import "slices"

// half is half of the limit.
const half = whole / 2

// directed returns the cases that need nothing but the store.
func directed() []testCase {
	return slices.Concat(joinCases(), roomCases(), sequenceCases(), silenceCases(), rosterCases(),
		numberCases(), callCases(), forgetCases(), documentCases(), operatorCases(), epochCases(), deathCases(), permitCases(), tillCases(), pushCases())
}
