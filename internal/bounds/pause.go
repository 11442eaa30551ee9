package bounds

import (
	"slices"
	"time"
	"unicode"
	"unicode/utf8"
)

// PauseSettings are what limit.PauseOptions set; see package sharing.
type PauseSettings struct {
	Tag  string
	Wait time.Duration
}

// PauseText reports whether s can be a text of a pause, of up to most bytes.
func PauseText(s string, most int) bool {
	return len(s) <= most && utf8.ValidString(s) && !slices.ContainsFunc([]rune(s), unicode.IsControl)
}
