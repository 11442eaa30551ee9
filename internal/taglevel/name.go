package taglevel

import (
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/tagname"
)

// between stands between the levels of a name.
const between = "/"

// Name returns the tag of two levels. Without a second it is the first alone, and without a first there is none. ok is false if the first
// has a slash: it could be the key of another team.
//
// Whatever a caller gives as its second, the tag is one that the pattern `first/*` matches: slashes become underscores, and what cannot be
// a part of a name becomes a hash of it. Where not even that fits, because the first is longer than 40 bytes, it is the first alone.
func Name(first, second string) (tag string, ok bool) {
	if strings.Contains(first, between) {
		return "", false
	}
	if first == "" || second == "" {
		return first, true
	}
	for _, key := range []string{strings.ReplaceAll(second, between, "_"), tagname.Hashed(second)} {
		if tag = first + between + key; tagname.Valid(tag) {
			return tag, true
		}
	}
	return first, true
}

// First returns the first level of a tag.
func First(tag string) string {
	first, _, _ := strings.Cut(tag, between)
	return first
}
