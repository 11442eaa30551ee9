package main

import (
	"regexp"
	"strings"
)

// hidden replaces a secret.
const hidden = "(not shown)"

// keyLike matches keys and parts of them: text with the prefix of a key, text after Bearer, and text masked with stars.
var keyLike = regexp.MustCompile(`(?i)\bbearer\s+\S+|\b(sk|pk|rk|gsk|xai|hf|key)[-_][A-Za-z0-9_*.-]{4,}|[^\s"',;:]*\*{2,}[^\s"',;:]*`)

// hideSecrets removes secrets from a text.
func hideSecrets(text string, secrets []string) string {
	for _, secret := range secrets {
		for _, word := range append(strings.Fields(secret), secret) { // only the key of "Bearer KEY", too
			if len(word) >= 6 && !strings.EqualFold(word, "bearer") && !strings.EqualFold(word, "basic") {
				text = strings.ReplaceAll(text, word, hidden)
			}
		}
	}
	return text
}
