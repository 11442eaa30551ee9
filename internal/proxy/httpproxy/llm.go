package httpproxy

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"unicode"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
)

// The estimate for a request to an LLM: four bytes of its text are a token, and an answer has its maximum length.
const (
	bytesPerToken = 4
	outputTokens  = 1024
	// longestLimit is the maximum length of the text of a limit on the answer in a form, in bytes.
	longestLimit = 512
)

// An llm estimates the cost of a request to an LLM while its body is read. The usage in the answer corrects it.
type llm struct {
	scanner *costrule.Scanner // of a body of JSON; it calls value. nil for others
	total   int64             // bytes read
	media   int64             // bytes of complete images, sounds or files among them
	tokens  int64             // of these
	answer  int64             // assumed length of an answer if the request does not limit it

	output, times int64 // maximum length and number of answers; 0: not in the request

	unread string // a limit that cannot be read, while a service may read it; empty: none

	open  medium // the medium of the unfinished end of a body that is not JSON
	bytes int64  // read of it
}

// The names of limits on an answer, and of the number of answers, in the form of costrule.Plain.
var (
	outputNames = names("max_tokens max_completion_tokens max_output_tokens max_new_tokens max_token_count " +
		"max_tokens_to_sample max_gen_len num_predict n_predict")
	timesNames = names("n best_of candidate_count num_return_sequences num_generations num_results")
	// groupNames are objects that may contain such limits, besides the outermost.
	groupNames = names("generation_config inference_config text_generation_config generate_config parameters options config additional_model_request_fields")
)

func names(list string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		set[costrule.Plain(name)] = true
	}
	return set
}

// newLLM starts the estimate for a request, whose body is fed to it.
func newLLM(m *message, scanner *costrule.Scanner) *llm {
	l := &llm{answer: answerLength(m.req)}
	switch kind, boundary := shape(m); kind {
	case jsonShape:
		l.scanner = scanner
	case formShape:
		l.readForm(m.body, boundary)
	case fileShape:
		l.open = mediumOf(m.body, m.req.Header.Get("Content-Type"))
	default:
	}
	return l
}

// answerLength returns the assumed length of the answer to a request that does not limit it.
func answerLength(r *http.Request) int64 {
	if r.ContentLength == 0 && len(r.TransferEncoding) == 0 && r.Method != http.MethodPost && !isHandshake(r) {
		return 1 // a list of models, say
	}
	if embeds(r.URL.Path) {
		return 0
	}
	return outputTokens
}

// embeds reports whether the path is that of a call without a text answer: embeddings and the like.
func embeds(p string) bool {
	if path.Clean("/"+p) != strings.TrimSuffix(p, "/") || strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`;\,?#%`, r) }) {
		return false // the service may interpret it as another call
	}
	last := path.Base(p)
	if last == "invoke" { // Amazon Bedrock: /model/amazon.titan-embed-text-v2:0/invoke
		last = path.Base(path.Dir(p))
	}
	if _, verb, ok := strings.Cut(last, ":"); ok && !strings.Contains(p, "/invoke") {
		last = verb // Gemini: /v1beta/models/gemini-embedding-001:embedContent
	}
	last = costrule.Plain(last)
	for _, word := range []string{"embed", "rerank", "moderations", "counttokens", "tokenize"} {
		if strings.Contains(last, word) {
			return true
		}
	}
	return false
}

// feed processes more of the body.
func (l *llm) feed(p []byte) {
	l.total += int64(len(p))
	if l.scanner != nil {
		_, _ = l.scanner.Write(p) // never fails
	} else {
		l.bytes += int64(len(p))
	}
}

// value processes a value of a JSON body.
func (l *llm) value(v costrule.Value) {
	if (v.Kind == costrule.Figure || v.Kind == costrule.String) && !l.scanner.InList() && l.isLimit() {
		l.limit(l.scanner.Key(0), v.Text(), v.Cut())
	}
	switch {
	case v.Kind != costrule.String:
	case v.Len >= shortestMedium:
		if medium, prefix := l.inside(v); medium != text {
			l.media += int64(v.Len)
			l.tokens += medium.tokens(decoded(v.Len - prefix))
		}
	case isRemoteImage(l.scanner, v):
		l.tokens += imageTokens
	}
}

// isLimit reports whether the scanner's value is where services have limits on an answer.
func (l *llm) isLimit() bool {
	depth := l.scanner.Depth()
	for out := 1; out < depth && depth <= 3; out++ {
		if !groupNames[costrule.Plain(l.scanner.Key(out))] {
			return false
		}
	}
	return depth > 0 && depth <= 3
}

// limit processes a limit on the answer. Of several the largest counts. Words such as "auto" are ignored. Other texts with digits, which
// some services read as numbers (5_000), cannot be read, and neither can one that is not kept completely (cut).
func (l *llm) limit(name, value string, cut bool) {
	at := &l.output
	switch plain := costrule.Plain(name); {
	case timesNames[plain]:
		at = &l.times
	case !outputNames[plain]:
		return
	}
	n, ok := costrule.Number(value)
	switch {
	case ok && !cut:
		*at = max(*at, int64(n))
	case cut || strings.ContainsFunc(value, unicode.IsDigit) && !strings.Contains(value, "-"):
		l.unread = name
	}
}

// fault returns the answer to a body that cannot be read; nil: it can be, so far.
func (l *llm) fault(s *costrule.Scanner) *unreadableError {
	switch {
	case s.Broken():
		return &unreadableError{"llm", notJSON("cost", "llm", "(no valid JSON, or too deep)")}
	case l.unread != "":
		return &unreadableError{"llm", proxy.FieldError(fmt.Sprintf("%.40q", l.unread), "a text with digits, or a very long one", costrule.AllowedNumber)}
	}
	return nil
}

// estimate returns the cost of a request whose body has rest more bytes, which are assumed to be like its last ones.
func (l *llm) estimate(rest int64) int {
	written, tokens := l.total-l.media, l.tokens
	switch medium, length, prefix := l.unfinished(); medium {
	case text:
		written += rest
	default:
		written -= length
		size := length + rest
		if l.scanner != nil {
			size = decoded(int(size) - prefix)
		}
		tokens += medium.tokens(size)
	}
	output := l.output
	if output == 0 {
		output = l.answer
	}
	return int(min(written/bytesPerToken+tokens+output*max(l.times, 1), costrule.Ungrantable))
}

// unfinished returns the medium of the unfinished end of the body, its length so far, and how many bytes at its beginning are not base64.
func (l *llm) unfinished() (m medium, length int64, prefix int) {
	if l.scanner == nil {
		return l.open, l.bytes, 0
	}
	v, ok := l.scanner.Unfinished()
	if !ok || v.Len < shortestMedium {
		return text, 0, 0
	}
	m, prefix = l.inside(v)
	return m, int64(v.Len), prefix
}

func llmDraw(m *message) (int, error) {
	rest := int64(0)
	if !m.whole {
		rest = max(m.req.ContentLength-int64(len(m.body)), 0)
	}
	f := m.facts()
	if fault := f.llm.fault(&f.scanner); fault != nil {
		return 0, fault
	}
	return f.llm.estimate(rest), nil
}
