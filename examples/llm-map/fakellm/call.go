package fakellm

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// A call is the part of a request that the server reads.
type call struct {
	dialect *dialect
	model   string
	key     string
	texts   []string // of the prompt
	inputs  []string // of a call for embeddings
	longest int      // of the answer, in tokens; 0 if it is not bounded
	answers int
	stream  bool
	usage   bool // a stream ends with the usage
	claude  bool // of Bedrock's InvokeModel
}

// promptFields are the fields of a body that are its prompt, in all dialects.
var promptFields = []string{
	"system", "systemInstruction", "system_instruction", "instructions", "tools", "toolConfig", "messages", "contents", "input", "prompt", "inputText",
	"content", "requests",
}

// notText are fields whose texts are no part of a prompt.
var notText = map[string]bool{
	"role": true, "type": true, "id": true, "cache_control": true, "cachePoint": true, "model": true, "image_url": true, "source": true,
	"inlineData": true, "inline_data": true, "image": true, "taskType": true,
}

// longestFields are the paths of the longest answer.
var longestFields = [][]string{
	{"max_completion_tokens"},
	{"max_tokens"},
	{"max_output_tokens"},
	{"max_gen_len"},
	{"generationConfig", "maxOutputTokens"},
	{"inferenceConfig", "maxTokens"},
	{"inferenceConfig", "max_new_tokens"},
	{"textGenerationConfig", "maxTokenCount"},
}

// readCall reads the body of a request.
func readCall(d *dialect, model string, body map[string]any, stream bool) call {
	c := call{dialect: d, model: model, answers: 1, stream: stream}
	if name, ok := body["model"].(string); ok && model == "" {
		c.model = name
	}
	for _, field := range promptFields {
		c.texts = appendTexts(c.texts, body[field])
	}
	for _, path := range longestFields {
		if n := number(body, path...); n > 0 {
			c.longest = n
			break
		}
	}
	for _, path := range [][]string{{"n"}, {"best_of"}, {"generationConfig", "candidateCount"}} {
		c.answers = max(c.answers, number(body, path...))
	}
	if on, ok := body["stream"].(bool); ok {
		c.stream = on
	}
	if options, ok := body["stream_options"].(map[string]any); ok {
		c.usage, _ = options["include_usage"].(bool)
	}
	_, c.claude = body["anthropic_version"]
	if d.embeds {
		c.inputs = inputsOf(body)
		c.texts = c.inputs
	}
	return c
}

// appendTexts appends all texts of a value of JSON.
func appendTexts(texts []string, value any) []string {
	switch v := value.(type) {
	case string:
		texts = append(texts, v)
	case []any:
		for _, each := range v {
			texts = appendTexts(texts, each)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !notText[name] {
				texts = appendTexts(texts, v[name])
			}
		}
	}
	return texts
}

// number returns the number at a path, or 0.
func number(body map[string]any, path ...string) int {
	for _, name := range path[:len(path)-1] {
		body, _ = body[name].(map[string]any)
	}
	n, _ := body[path[len(path)-1]].(float64)
	return int(min(max(n, 0), 1e9))
}

// inputsOf returns the inputs of a call for embeddings, a text each.
func inputsOf(body map[string]any) (inputs []string) {
	for _, field := range []string{"input", "requests", "content", "inputText"} {
		list, ok := body[field].([]any)
		if value := body[field]; !ok && value != nil {
			list = []any{value}
		}
		for _, each := range list {
			inputs = append(inputs, strings.Join(appendTexts(nil, each), ""))
		}
	}
	return inputs
}

// last returns the last text, of which the answer is made.
func (c *call) last() string {
	if len(c.texts) == 0 {
		return ""
	}
	return c.texts[len(c.texts)-1]
}

func (c *call) bytes() (n int) {
	for _, text := range c.texts {
		n += len(text)
	}
	return n
}

func (c *call) characters() (n int) {
	for _, text := range c.texts {
		n += utf8.RuneCountInString(text)
	}
	return n
}
