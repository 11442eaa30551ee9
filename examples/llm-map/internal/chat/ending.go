package chat

import (
	"encoding/json"
	"strings"
)

// An ending is the meaning of a finish_reason.
type ending int

const (
	goodEnding     ending = iota // also an unknown one
	cutEnding                    // it has its maximum length
	filteredEnding               // a filter of the provider removed it
	refusedEnding                // the model declined
	brokenEnding                 // something failed
	noEnding                     // it has not ended
)

// endings are the finish reasons of OpenAI, Azure and Anthropic, and of gateways and servers that pass on those of others, folded.
var endings = map[string]ending{
	"length": cutEnding, "maxtokens": cutEnding, "maxoutputtokens": cutEnding, "maxlength": cutEnding, "modellength": cutEnding,
	"modelcontextwindowexceeded": cutEnding, "contextlengthexceeded": cutEnding, "tokenlimit": cutEnding, "errorlimit": cutEnding,

	"contentfilter": filteredEnding, "contentfiltered": filteredEnding, "safety": filteredEnding, "recitation": filteredEnding,
	"blocklist": filteredEnding, "prohibitedcontent": filteredEnding, "spii": filteredEnding, "imagesafety": filteredEnding,
	"imageprohibitedcontent": filteredEnding, "imagerecitation": filteredEnding, "guardrailintervened": filteredEnding,
	"sensitive": filteredEnding, "errortoxic": filteredEnding,

	"refusal": refusedEnding,

	"error": brokenEnding, "networkerror": brokenEnding, "servererror": brokenEnding, "internalerror": brokenEnding,
	"insufficientsystemresource": brokenEnding, "abort": brokenEnding, "aborted": brokenEnding, "cancelled": brokenEnding,
	"canceled": brokenEnding, "usercancel": brokenEnding, "timeout": brokenEnding, "timelimit": brokenEnding, "failed": brokenEnding,
	"malformedfunctioncall": brokenEnding, "unexpectedtoolcall": brokenEnding, "incomplete": brokenEnding,

	"null": noEnding, "none": noEnding, "notfinished": noEnding, "unspecified": noEnding,
}

// endingOf interprets a finish reason in any spelling: max_tokens, MAX_TOKENS, MaxTokens or FinishReason.MAX_TOKENS.
func endingOf(reason string) ending {
	name := fold(reason)
	for _, prefix := range []string{"finishreason", "stopreason"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return endings[name]
}

// fold returns the letters and digits of a word, in lower case.
func fold(word string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, word)
}

// endOf returns the reason why a choice has ended, in the provider's word; empty if it has not.
func endOf(c object) string {
	for _, raw := range []json.RawMessage{c["finish_reason"], c["finishReason"], c["stop_reason"]} {
		if reason := textOf(raw); reason != "" && endingOf(reason) != noEnding {
			return reason
		}
	}
	return ""
}
