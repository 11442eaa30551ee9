package usage_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
)

// message is one of Amazon's binary event stream, with the types of headers that there are, and some at their end.
func message(kind, event, payload string, last ...string) string {
	text := func(name, value string) string {
		return string(rune(len(name))) + name + "\x07" + string(binary.BigEndian.AppendUint16(nil, uint16(len(value)))) + value
	}
	headers := text(":content-type", "application/json") + "\x01t\x00\x01f\x01\x01b\x02x\x01s\x03xx\x01i\x04xxxx\x01l\x05xxxxxxxx\x01a\x06\x00\x02xx" +
		"\x01d\x08xxxxxxxx\x01u\x09" + strings.Repeat("x", 16) + text(":message-type", kind) + text(":event-type", event) + strings.Join(last, "")
	m := []byte(prelude(16+len(headers)+len(payload), len(headers)) + headers + payload)
	return string(binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m)))
}

// prelude is the beginning of a message.
func prelude(length, headers int) string {
	m := binary.BigEndian.AppendUint32(nil, uint32(length))
	m = binary.BigEndian.AppendUint32(m, uint32(headers))
	return string(binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m)))
}

// event is an event of ConverseStream, and chunk one of InvokeModelWithResponseStream.
func event(name, payload string) string { return message("event", name, payload) }

func chunk(text string) string {
	return event("chunk", fmt.Sprintf(`{"bytes":%q,"p":"abcdef"}`, base64.StdEncoding.EncodeToString([]byte(text))))
}

// Parts of binary streams.
var (
	converseText = event("messageStart", `{"role":"assistant"}`) + event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"a"}}`)
	converseStop = event("contentBlockStop", `{"contentBlockIndex":0}`) + event("messageStop", `{"stopReason":"end_turn"}`)
	converseUsed = `{"metrics":{"latencyMs":9},"usage":{"inputTokens":50,"outputTokens":300,"totalTokens":201350,` +
		`"cacheReadInputTokens":200000,"cacheWriteInputTokens":1000,"cacheDetails":[{"ttl":"1h","inputTokens":600},{"ttl":"5m","inputTokens":400}]}}`
	converseUsage  = event("metadata", converseUsed)
	converseStream = converseText + converseStop + converseUsage

	metrics = `"amazon-bedrock-invocationMetrics":{"inputTokenCount":50,"outputTokenCount":300,"cacheReadInputTokenCount":200000,` +
		`"cacheWriteInputTokenCount":1000,"invocationLatency":9,"firstByteLatency":4}`
	invokeStream = chunk(`{"type":"message_start","message":{"usage":{"input_tokens":50,"cache_creation_input_tokens":1000,"cache_read_input_tokens":200000,`+
		`"output_tokens":1}}}`) + chunk(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`) +
		chunk(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":300}}`) + chunk(`{"type":"message_stop",`+metrics+`}`)
	novaStream = chunk(`{"contentBlockDelta":{"delta":{"text":"a"}}}`) + chunk(`{"messageStop":{"stopReason":"end_turn"}}`) +
		chunk(`{"metadata":{},`+metrics+`}`)
	llamaStream = chunk(`{"generation":"a","stop_reason":null}`) + chunk(`{"generation":"","generation_token_count":300,"stop_reason":"stop",`+metrics+`}`)
)

// read reads a body in pieces.
func read(contentType, body string, size int) *usage.Meter {
	m := usage.NewMeter(&http.Response{Header: http.Header{"Content-Type": {contentType}}}, nil)
	for ; len(body) > size; body = body[size:] {
		_, _ = m.Write([]byte(body[:size]))
	}
	_, _ = m.Write([]byte(body))
	return m
}

const binaryEvents = "application/vnd.amazon.eventstream"

// Only a stream that came whole and unchanged is whole.
func TestBinaryEventStream(t *testing.T) {
	long := func(n int) string {
		return event("contentBlockDelta", `{"delta":{"text":"`+strings.Repeat("x", n)+`"}}`)
	}
	changed := func(s string, at int) string { return s[:at] + string([]byte{s[at] ^ 1}) + s[at+1:] }
	minimal, err := hex.DecodeString("000000100000000005c248eb7d98c8ff") // as Amazon's test data has it
	require.NoError(t, err)
	body := converseText + converseStop
	around := len(long(0))
	counted := strings.TrimSuffix(finished, "}") + `,"usage":{"total_tokens":29}}`
	for _, tc := range []struct {
		name, body   string
		found, whole bool
	}{
		{"whole", converseStream, true, true},
		{"Anthropic's chunks", invokeStream, true, true},
		{"Amazon's chunks", novaStream, true, true},
		{"Meta's chunks", llamaStream, true, true},
		{"OpenAI's chunks", chunk(piece) + chunk(strings.TrimSuffix(finished, "}")+","+metrics+"}"), true, true},
		{"OpenAI's chunks, not finished", chunk(piece) + chunk(strings.TrimSuffix(piece, "}")+","+metrics+"}"), true, false},
		{"no end of the message", converseText + converseUsage, true, false},
		{"no usage", body + event("metadata", `{"metrics":{}}`), false, false},
		{"an end behind the usage", converseText + converseUsage + converseStop, true, false},
		{"an exception", body + message("exception", "modelStreamErrorException", `{"message":"lost"}`) + converseUsage, true, false},
		{"an exception behind the usage", converseStream + message("exception", "throttlingException", "{}"), true, false},
		{"an error", body + message("error", "", "") + converseUsage, true, false},
		{"a message without headers", string(minimal) + converseStream, true, false},
		{"a chunk that is none", chunk("{}") + event("chunk", `{"bytes":3}`) + invokeStream, true, true},
		{"a chunk that is none, behind", invokeStream + event("chunk", `{"bytes":3}`), true, false},
		{"a broken payload behind", converseStream + event("contentBlockDelta", `{"delta":`), true, false},
		{"a broken string", event("contentBlockDelta", `{"delta":"`) + converseStream, true, true},
		{"a changed prelude", changed(converseText, 5) + converseStop + converseUsage, false, false},
		{"a changed checksum", changed(converseText, 9) + converseStop + converseUsage, false, false},
		{"a changed payload", body + changed(converseUsage, len(converseUsage)-20), false, false},
		{"a changed payload before", changed(converseText, len(converseText)-20) + converseStop + converseUsage, true, false},
		{"a changed prelude behind", converseStream + changed(converseText, 5), true, false},
		{"cut off in the last event", invokeStream[:len(invokeStream)-5], true, false},
		{"OpenAI's chunks, without metrics", chunk(piece) + chunk(counted), true, true},
		{"OpenAI's chunks, without metrics, cut off", chunk(piece) + chunk(counted) + chunk(piece)[:20], true, false},
		{"more headers than a message has", converseStream + prelude(30, 15) + strings.Repeat("x", 18), true, false},
		{"as many headers as a message has", converseStream + prelude(30, 14), true, true},
		{"a last header without a value", body + message("event", "metadata", converseUsed, "\x01t\x00"), true, true},
		{"a last header of no length", body + message("event", "metadata", converseUsed, "\x01a\x06\x00\x00"), true, true},
		{"a long event", converseStream + long(200<<10), true, true},
		{"the longest event", converseStream + long(256<<10-around), true, true},
		{"one a byte longer", converseStream + long(256<<10-around+1), true, false},
		{"an event that is too long", converseText + long(300<<10) + converseStop + converseUsage, true, true},
		{"an event that is too long, behind", converseStream + long(300<<10), true, false},
		{"a usage that is too long", body + event("metadata", `{"trace":"`+strings.Repeat("x", 300<<10)+`","usage":{"outputTokens":3}}`), false, false},
		{"JSON of that type", `{"usage":{"inputTokens":50,"outputTokens":300}}`, true, true},
		{"events of that type", openAIStream, true, true},
		{"nothing", "", false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, size := range []int{1, 2, 3, 11, 4096, len(tc.body) + 1} {
				m := read(binaryEvents, tc.body, size)
				_, found, final := m.End(true)
				require.Equal(t, fmt.Sprint(tc.found, tc.whole), fmt.Sprint(found, final), "in pieces of %d", size)
				require.EqualValues(t, len(tc.body), m.Bytes())
			}
		})
	}
}

// A message of 64 MiB is the longest that is passed over. Behind a longer one nothing is read.
func TestTheLongestMessage(t *testing.T) {
	for length, want := range map[int]bool{64 << 20: true, 64<<20 + 1: false} {
		m := read(binaryEvents, prelude(length, 0), 12)
		zeros := make([]byte, 1<<20)
		for rest := length - 12; rest > 0; rest -= len(zeros) {
			zeros = zeros[:min(rest, len(zeros))]
			_, _ = m.Write(zeros)
		}
		_, _ = m.Write([]byte(converseStream))
		_, found, final := m.End(true)
		require.Equal(t, fmt.Sprint(want, want), fmt.Sprint(found, final))
	}
}

// Lengths and headers that can't be don't end the process.
func FuzzBinaryEventStream(f *testing.F) {
	f.Add(converseStream, uint16(3))
	f.Add(invokeStream, uint16(40))
	for i := range 60 { // cut headers and types of none, with right checksums
		headers := "\x0d:message-type\x07\x00\x05event\x0b:event-type\x07\x00\x08metadata"[:min(i, 45)]
		if i > 45 {
			headers = "\x01x" + string(rune(i-46))
		}
		m := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)))
		m = binary.BigEndian.AppendUint32(m, uint32(len(headers)))
		m = append(binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m)), headers...)
		f.Add(string(binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m)))+converseStream, uint16(i))
	}
	f.Fuzz(func(t *testing.T, body string, at uint16) {
		whole, pieces := read(binaryEvents, body, len(body)+1), read(binaryEvents, body, int(at)+1)
		u, found, final := whole.End(true)
		again, foundAgain, finalAgain := pieces.End(true)
		require.Equal(t, u, again)
		require.Equal(t, fmt.Sprint(found, final), fmt.Sprint(foundAgain, finalAgain))
	})
}
