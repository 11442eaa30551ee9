//go:build numathrottle_mutants

package gate

import "github.com/numaproj-contrib/numathrottle/internal/failpoints"

// Rules is the switches of the gate's rules; package throttle hands them on.
var Rules = failpoints.New("gate", map[string]failpoints.Rule{
	"pause": {Number: int(rulePause), Says: "grant nothing while a pause holds"},
})

// skip tells whether a rule of the gate is left out by a test.
func skip(r rule) bool { return Rules.Skip(int(r)) }
