package prompt

import (
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
)

// The names of limits on an answer, and of the number of answers, in the form of costrule.Plain.
var (
	outputNames = costrule.Names("max_tokens max_completion_tokens max_output_tokens max_new_tokens max_token_count " +
		"max_tokens_to_sample max_gen_len num_predict n_predict")
	timesNames = costrule.Names("n best_of candidate_count num_return_sequences num_generations num_results")
	// groupNames are objects that may contain such limits, besides the outermost.
	groupNames = costrule.Names("generation_config inference_config text_generation_config generate_config parameters options config " +
		"additional_model_request_fields")
)

// exactly returns the set of some names, separated by blanks.
func exactly(list string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		set[name] = true
	}
	return set
}

var (
	// unread are fields of the body that no model reads, as services spell them. Any other text counts.
	unread = exactly("model user metadata service_tier serviceTier previous_response_id conversation prompt_cache_key safety_identifier " +
		"encoding_format input_type embedding_types truncate anthropic_version anthropic_beta stop stop_sequences stopSequences tool_choice " +
		"cachedContent taskType outputDimensionality performanceConfig guardrailConfig requestMetadata modalities voice verbosity reasoning " +
		"reasoning_effort include thinking safetySettings stream_options truncation container inference_geo provider route models transforms")
	// marks are fields further down that no model reads.
	marks = exactly("role type id model tool_use_id tool_call_id toolUseId call_id media_type mimeType mime_type detail format signature " +
		"thoughtSignature encrypted_content cache_control cachePoint status taskType outputDimensionality")
	// schemas are fields whose names and marks a model reads along: tools and their arguments, and the form of an answer.
	schemas = exactly("tools functions response_format responseSchema responseJsonSchema json_schema toolConfig tool_config format args response " +
		"input json schema")
	// inputs are the lists of a call for embeddings, or one like it.
	inputs = exactly("input inputs texts requests images")
)
