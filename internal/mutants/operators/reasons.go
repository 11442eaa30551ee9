package operators

import (
	_ "embed"
	"strings"
)

//go:embed survivors.txt
var survivors string

// Reasons are the mutants that no test can notice, with the reason, from survivors.txt. A line holds the name of a mutant; the next one,
// which begins with a blank, holds the reason.
func Reasons() map[string]string {
	reasons, name := map[string]string{}, ""
	for line := range strings.Lines(survivors) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, " "):
			reasons[name] = strings.TrimSpace(line)
		default:
			name = line
			reasons[name] = ""
		}
	}
	return reasons
}
