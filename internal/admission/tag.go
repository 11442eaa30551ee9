package admission

import (
	"strconv"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
)

// AllowedTag describes the input of ParseTag.
const AllowedTag = "`header NAME`, `key N` counted from 0, or `json PATH`"

// A TagRule reads the tag of a message.
type TagRule func(keys []string, value func() []byte, headers func() map[string]string) string

// ParseTag reads a rule: `header NAME`, `key N` counted from 0, `json PATH` such as user.tenant; an empty text gives none. For any other
// text ok is false.
func ParseTag(text string) (tag TagRule, ok bool) {
	word, argument, _ := strings.Cut(text, " ")
	argument = strings.TrimSpace(argument)
	switch {
	case text == "":
		return nil, true
	case word == "header" && argument != "":
		of := HeaderTag(argument)
		return func(_ []string, _ func() []byte, headers func() map[string]string) string { return of(headers()) }, true
	case word == "key":
		index, err := strconv.ParseUint(argument, 10, 16)
		if err != nil {
			return nil, false
		}
		of := KeyTag(int(index))
		return func(keys []string, _ func() []byte, _ func() map[string]string) string { return of(keys) }, true
	case word == "json":
		path, ok := costrule.ParsePath(argument)
		return func(_ []string, value func() []byte, _ func() map[string]string) string {
			found, _, _ := costrule.Find(value(), path) // where it is uncertain, what most handlers read
			return found.Tag()
		}, ok
	}
	return nil, false
}
