package taglevel

import (
	"slices"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/internal/config"
)

// mostLevels is how many levels there are.
const mostLevels = 2

// Rules returns the rules of a setting, each as valid has it. An empty setting has none. Any other is one rule, or a list of one or two
// that differ; ok is false for anything else.
func Rules[R any](text string, valid func(rule string) (R, bool)) (rules []R, ok bool) {
	if text == "" {
		return nil, true
	}
	var seen []string
	for _, rule := range config.Listed(text) {
		r, ok := valid(rule)
		same := func(other string) bool { return strings.EqualFold(rule, other) }
		if rule == "" || !ok || slices.ContainsFunc(seen, same) {
			return nil, false
		}
		seen, rules = append(seen, rule), append(rules, r)
	}
	return rules, len(rules) == 1 || len(rules) == mostLevels
}

// Field is the setting tag, with rules that valid accepts and allowed describes.
func Field[C, R any](allowed, doc, like string, at func(C) *string, valid func(rule string) (R, bool)) config.Field[C] {
	return config.Field[C]{
		Key: "tag", Example: like, Allowed: allowed + "; or a list of two of these, which differ: the levels of a tag", Default: "none", Doc: doc,
		Value: config.TextOrList(at), Form: config.TextOrListForm(1, mostLevels),
		Range: func(c C) bool { _, ok := Rules(*at(c), valid); return ok },
	}
}

// MessageField is the setting tag of a program that reads messages.
func MessageField[C any](doc string, at func(C) *string) config.Field[C] {
	return Field(admission.AllowedTag, doc, "header tenant", at, admission.ParseTag)
}

// Messages returns the rule for the tag of a message by a setting, and whether it has two levels. A message whose first level has a slash
// has no tag. There is no rule if there is none in the setting, or if that is wrong.
func Messages(text string) (rule admission.TagRule, two bool) {
	rules, _ := Rules(text, admission.ParseTag)
	switch len(rules) {
	case 0:
		return nil, false
	case 1:
		return rules[0], false
	}
	return func(keys []string, value func() []byte, headers func() map[string]string) string {
		tag, _ := Name(rules[0](keys, value, headers), rules[1](keys, value, headers))
		return tag
	}, true
}
