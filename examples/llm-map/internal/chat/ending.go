package chat

import "strings"

// An ending is what a finish_reason says of an answer.
type ending int

const (
	goodEnding     ending = iota // also what is not known
	cutEnding                    // it is as long as it may be
	filteredEnding               // a filter of the provider took it away
	refusedEnding                // the model declined
	brokenEnding                 // something failed
)

// endings are the finish reasons of OpenAI, Azure and Anthropic, and of gateways and servers that pass on those of
// others.
var endings = map[string]ending{
	"length": cutEnding, "max_tokens": cutEnding, "max_output_tokens": cutEnding,

	"content_filter": filteredEnding, "content_filtered": filteredEnding, "safety": filteredEnding, "recitation": filteredEnding,
	"blocklist": filteredEnding, "prohibited_content": filteredEnding, "spii": filteredEnding, "image_safety": filteredEnding,
	"guardrail_intervened": filteredEnding, "sensitive": filteredEnding,

	"refusal": refusedEnding,

	"error": brokenEnding, "network_error": brokenEnding, "server_error": brokenEnding, "internal_error": brokenEnding,
	"insufficient_system_resource": brokenEnding, "abort": brokenEnding, "aborted": brokenEnding, "cancelled": brokenEnding,
	"canceled": brokenEnding, "timeout": brokenEnding, "failed": brokenEnding, "malformed_function_call": brokenEnding,
}

func endingOf(reason string) ending { return endings[strings.ToLower(strings.TrimSpace(reason))] }
