package fakellm

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"
)

// An answer is what the server answers to a call, in no dialect yet.
type answer struct {
	call  *call
	id    string
	text  string
	whole bool // not as long as it may be
	used  Usage
	now   time.Time
}

// newAnswer makes an answer of words of the last text, always the same for a prompt and a usage.
func newAnswer(c *call, used Usage) *answer {
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.last()))
	seed := int(h.Sum32() >> 1)
	words := strings.Fields(c.last())
	if len(words) == 0 {
		words = []string{"nothing"}
	}
	var text strings.Builder
	for i := range max(1, min(used.Output, 400)) { // a token of each
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(words[(seed+i)%len(words)])
	}
	return &answer{call: c, id: fmt.Sprintf("%08x", seed), text: text.String(), whole: used.Output < c.longest, used: used, now: time.Now()}
}

// finish returns the reason why the answer ends, as a dialect calls it.
func (a *answer) finish(whole, cut string) string {
	if a.whole {
		return whole
	}
	return cut
}

// words are the parts of a streamed answer.
func (a *answer) words() []string { return strings.SplitAfter(a.text, " ") }

// vector returns the embedding of a text: always the same, of length 1.
func vector(text string) []float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	v := []float64{0, 0, 0, 0, 0, 0, 0, 0}
	v[h.Sum32()%8] = 0.8
	v[(h.Sum32()+1+h.Sum32()/8%7)%8] = 0.6
	return v
}
