package fakellm

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"net/http"
	"strconv"
)

func converseUsage(u Usage) object {
	return object{
		"inputTokens": u.Input, "outputTokens": u.Output, "totalTokens": u.Total(), "cacheReadInputTokens": u.CacheRead, "cacheWriteInputTokens": u.CacheWrite,
	}
}

func writeConverse(w http.ResponseWriter, a *answer) {
	writeJSON(w, http.StatusOK, object{
		"output":     object{"message": object{"role": "assistant", "content": []object{{"text": a.text}}}},
		"stopReason": a.finish("end_turn", "max_tokens"), "usage": converseUsage(a.used), "metrics": object{"latencyMs": 1},
	})
}

// streamConverse writes the answer in the binary event stream of AWS.
func streamConverse(w http.ResponseWriter, a *answer) {
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	event := func(name string, body object) { _, _ = w.Write(binaryEvent(name, body)) }
	event("messageStart", object{"role": "assistant"})
	for _, word := range a.words() {
		event("contentBlockDelta", object{"contentBlockIndex": 0, "delta": object{"text": word}})
	}
	event("contentBlockStop", object{"contentBlockIndex": 0})
	event("messageStop", object{"stopReason": a.finish("end_turn", "max_tokens")})
	event("metadata", object{"usage": converseUsage(a.used), "metrics": object{"latencyMs": 1}})
}

// binaryEvent returns an event: its length, that of its headers and their checksum; headers and payload; the checksum of it all.
func binaryEvent(name string, body object) []byte {
	payload, err := json.Marshal(body)
	if err != nil {
		return nil // texts and numbers can be encoded
	}
	var headers []byte
	for _, h := range [][2]string{{":event-type", name}, {":content-type", "application/json"}, {":message-type", "event"}} {
		headers = append(headers, byte(len(h[0])))
		headers = append(headers, h[0]...)
		headers = append(headers, 7) // a text
		headers = binary.BigEndian.AppendUint16(headers, uint16(len(h[1])))
		headers = append(headers, h[1]...)
	}
	const around = 16 // three numbers before, one after
	event := binary.BigEndian.AppendUint32(nil, uint32(around+len(headers)+len(payload)))
	event = binary.BigEndian.AppendUint32(event, uint32(len(headers)))
	event = binary.BigEndian.AppendUint32(event, crc32.ChecksumIEEE(event))
	event = append(append(event, headers...), payload...)
	return binary.BigEndian.AppendUint32(event, crc32.ChecksumIEEE(event))
}

// writeInvoke answers InvokeModel: the usage is in the headers, and in the body only of a model of Anthropic's.
func writeInvoke(w http.ResponseWriter, a *answer) {
	for name, n := range map[string]int{
		"Input-Token-Count": a.used.Input, "Output-Token-Count": a.used.Output,
		"Cache-Write-Input-Token-Count": a.used.CacheWrite, "Cache-Read-Input-Token-Count": a.used.CacheRead,
	} {
		w.Header().Set("X-Amzn-Bedrock-"+name, strconv.Itoa(n))
	}
	if a.call.claude {
		writeMessages(w, a)
		return
	}
	writeJSON(w, http.StatusOK, object{"generation": a.text, "stop_reason": a.finish("stop", "length")})
}
