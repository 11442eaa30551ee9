// Package statecodec writes and reads states that pools keep in documents: a fixed list of integers, in decimal, separated by blanks. A
// state has one text, and no other is accepted, so that equal states are equal documents. Its functions are pure.
package statecodec

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Append appends the text of fields to b.
func Append(b []byte, fields []*int64) []byte {
	for i, f := range fields {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, *f, 10)
	}
	return b
}

// Parse reads the output of Append, of at most so many bytes, and nothing else. Its errors begin with the name of the package that owns the
// state; fields are undefined then.
func Parse(owner, text string, bytes int, fields []*int64) error {
	if len(text) > bytes {
		return fmt.Errorf("%s: a state of %d bytes, allowed: at most %d", owner, len(text), bytes)
	}
	words := strings.Split(text, " ")
	if len(words) != len(fields) {
		return fmt.Errorf("%s: a state of %d words, allowed: %d", owner, len(words), len(fields))
	}
	for i, f := range fields {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != words[i] {
			return fmt.Errorf("%s: word %d of a state is %.40q, allowed: a decimal number", owner, i+1, words[i])
		}
		*f = n
	}
	return nil
}

// A Check collects the fields with values that are not allowed. The zero Check has none.
type Check struct {
	Owner string // as of Parse
	errs  []error
}

// Within records a field that is not in low to high.
func (c *Check) Within(field string, value, low, high int64) {
	if value < low || value > high {
		c.errs = append(c.errs, fmt.Errorf("%s: %s of a state is %d, allowed: %d to %d", c.Owner, field, value, low, high))
	}
}

// Err joins the recorded faults; nil if there are none.
func (c *Check) Err() error { return errors.Join(c.errs...) }
