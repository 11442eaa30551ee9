//go:build numathrottle_mutants

package fairtags

import "github.com/numaproj-contrib/numathrottle/internal/failpoints"

// Rules is the switches of the policy's rules.
var Rules = failpoints.New("fairtags", map[string]failpoints.Rule{
	"alike":  {Number: int(ruleAlike), Says: "what is reserved is scaled down alike"},
	"silent": {Number: int(ruleSilent), Says: "a silent row has no demand"},
	"class":  {Number: int(ruleClass), Says: "a lower class keeps a twentieth of the limit"},
	"other":  {Number: int(ruleOther), Says: "tags without a quota are one tag"},
	"held":   {Number: int(ruleHeld), Says: "guarantees that a row holds are kept"},
})

// skip tells whether a rule of the policy is left out by a test.
func skip(r rule) bool { return Rules.Skip(int(r)) }
