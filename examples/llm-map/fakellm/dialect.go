package fakellm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
)

// A dialect is the form of the requests, answers and errors of an endpoint.
type dialect struct {
	// path matches the end of the endpoint's path; its group model is the model.
	path *regexp.Regexp
	// prompts are the fields of which a request needs one.
	prompts []string
	// needsLongest: a request without the longest answer is refused.
	needsLongest bool
	// embeds: it answers with embeddings.
	embeds bool
	// noWrites: what is put into a cache is input like any other.
	noWrites bool
	// write answers with one body, and stream with events.
	write, stream func(w http.ResponseWriter, a *answer)
	// fail answers with an error.
	fail func(w http.ResponseWriter, f fault)
}

var dialects = []*dialect{
	{path: regexp.MustCompile(`/chat/completions$`), prompts: []string{"messages"}, write: writeChat, stream: streamChat, fail: failOpenAI},
	{path: regexp.MustCompile(`/responses$`), prompts: []string{"input"}, write: writeResponses, stream: streamResponses, fail: failOpenAI},
	{path: regexp.MustCompile(`/embeddings$`), prompts: []string{"input"}, embeds: true, write: writeEmbeddings, fail: failOpenAI},
	{
		path: regexp.MustCompile(`/messages$`), prompts: []string{"messages"}, needsLongest: true,
		write: writeMessages, stream: streamMessages, fail: failMessages,
	},
	{
		path: regexp.MustCompile(`/models/(?P<model>[^/]+):(generateContent|streamGenerateContent)$`), prompts: []string{"contents"}, noWrites: true,
		write: writeGemini, stream: streamGemini, fail: failGemini,
	},
	{
		path: regexp.MustCompile(`/models/(?P<model>[^/]+):embedContent$`), prompts: []string{"content"}, embeds: true,
		write: writeGeminiEmbedding, fail: failGemini,
	},
	{
		path: regexp.MustCompile(`/models/(?P<model>[^/]+):batchEmbedContents$`), prompts: []string{"requests"}, embeds: true,
		write: writeGeminiEmbeddings, fail: failGemini,
	},
	{
		path: regexp.MustCompile(`/model/(?P<model>[^/]+)/(converse|converse-stream)$`), prompts: []string{"messages"},
		write: writeConverse, stream: streamConverse, fail: failBedrock,
	},
	{
		path: regexp.MustCompile(`/model/(?P<model>[^/]+)/invoke$`), prompts: []string{"messages", "prompt", "inputText"},
		write: writeInvoke, fail: failBedrock,
	},
}

// dialectOf returns the dialect of a path and the model in it; nil if there is no such endpoint.
func dialectOf(path string) (*dialect, string) {
	for _, d := range dialects {
		if parts := d.path.FindStringSubmatch(path); parts != nil {
			if i := d.path.SubexpIndex("model"); i > 0 {
				return d, parts[i]
			}
			return d, ""
		}
	}
	return nil, ""
}

// isRequest reports whether a body has a prompt.
func (d *dialect) isRequest(body map[string]any) bool {
	for _, field := range d.prompts {
		switch v := body[field].(type) {
		case nil:
		case []any:
			if len(v) > 0 {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// an object is one of JSON.
type object = map[string]any

func writeJSON(w http.ResponseWriter, status int, body any) {
	encoded, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "cannot encode the answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encoded)
}

// writeEvent writes a server-sent event; name is its type, if it has one.
func writeEvent(w http.ResponseWriter, name string, body any) {
	w.Header().Set("Content-Type", "text/event-stream")
	encoded, err := json.Marshal(body)
	if err != nil {
		return // a struct and texts can be encoded
	}
	if name != "" {
		_, _ = fmt.Fprintf(w, "event: %s\n", name)
	}
	_, _ = fmt.Fprintf(w, "data: %s\n\n", encoded)
}
