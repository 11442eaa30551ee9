//go:build numathrottle_mutants

package bucket

import "github.com/numaproj-contrib/numathrottle/internal/failpoints"

// Rules is the switches of the bucket's rules; package throttle hands them on.
var Rules = failpoints.New("bucket", map[string]failpoints.Rule{
	"lease-at-draw": {Number: int(ruleLeaseAtDraw), Says: "compare clock and lease at each draw"},
	"starts-empty":  {Number: int(ruleStartsEmpty), Says: "a processor that had no share starts with an empty bucket"},
	"fall-clamps":   {Number: int(ruleFallClamps), Says: "a share that falls takes its part of the bucket along"},
	"give-back":     {Number: int(ruleGiveBack), Says: "credit what is given back only while little was granted since"},

	"hard-clocks":    {Number: int(ruleHardClocks), Says: "hard: the rate allows for clocks that run fast"},
	"hard-whole":     {Number: int(ruleHardWhole), Says: "hard: no bucket is rounded up to one token"},
	"hard-collect":   {Number: int(ruleHardCollect), Says: "hard: nobody collects more than the bucket holds"},
	"hard-give-back": {Number: int(ruleHardGiveBack), Says: "hard: credit what is given back only if it would not have overflowed"},
})

// skip tells whether a rule of the bucket is left out by a test.
func skip(r rule) bool { return Rules.Skip(int(r)) }
