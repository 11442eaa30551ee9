package main

import (
	"regexp"
	"strings"
)

// hidden stands in the place of a secret.
const hidden = "(not shown)"

// keyLike finds what looks like a key, or like a part of one: what begins as keys do, what stands behind Bearer, and
// what was made unreadable with stars.
var keyLike = regexp.MustCompile(`(?i)\bbearer\s+\S+|\b(sk|pk|rk|gsk|xai|hf|key)[-_][A-Za-z0-9_*.-]{4,}|[^\s"',;:]*\*{2,}[^\s"',;:]*`)

// hideSecrets takes secrets out of a text.
func hideSecrets(text string, secrets []string) string {
	for _, secret := range secrets {
		for _, word := range append(strings.Fields(secret), secret) { // of "Bearer KEY" the key alone, too
			if len(word) >= 6 && !strings.EqualFold(word, "bearer") && !strings.EqualFold(word, "basic") {
				text = strings.ReplaceAll(text, word, hidden)
			}
		}
	}
	return text
}
