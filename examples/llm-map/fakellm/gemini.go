package fakellm

import (
	"net/http"
)

// content is an answer of Gemini, or a part of a streamed one.
func (a *answer) content(text, finish string) object {
	u := a.used
	candidate := object{"index": 0, "content": object{"role": "model", "parts": []object{{"text": text}}}}
	usage := object{"promptTokenCount": u.Prompt() - u.ToolUse, "totalTokenCount": u.Prompt()}
	if u.CacheRead > 0 {
		usage["cachedContentTokenCount"] = u.CacheRead
	}
	if u.ToolUse > 0 {
		usage["toolUsePromptTokenCount"] = u.ToolUse
	}
	if finish != "" {
		candidate["finishReason"] = finish
		usage["candidatesTokenCount"], usage["totalTokenCount"] = u.Output-u.Reasoning, u.Total()
		if u.Reasoning > 0 {
			usage["thoughtsTokenCount"] = u.Reasoning
		}
	}
	return object{"responseId": a.id, "modelVersion": a.call.model, "candidates": []object{candidate}, "usageMetadata": usage}
}

func writeGemini(w http.ResponseWriter, a *answer) {
	writeJSON(w, http.StatusOK, a.content(a.text, a.finish("STOP", "MAX_TOKENS")))
}

func streamGemini(w http.ResponseWriter, a *answer) {
	words := a.words()
	for i, word := range words {
		finish := ""
		if i == len(words)-1 {
			finish = a.finish("STOP", "MAX_TOKENS")
		}
		writeEvent(w, "", a.content(word, finish))
	}
}

func writeGeminiEmbedding(w http.ResponseWriter, a *answer) {
	writeJSON(w, http.StatusOK, object{"embedding": object{"values": vector(a.call.last())}})
}

func writeGeminiEmbeddings(w http.ResponseWriter, a *answer) {
	list := []object{}
	for _, input := range a.call.inputs {
		list = append(list, object{"values": vector(input)})
	}
	writeJSON(w, http.StatusOK, object{"embeddings": list})
}
