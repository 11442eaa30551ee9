package quotafile

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// MaxText is the maximum length of a text for Parse, in bytes.
const MaxText = 1 << 20

// maxFaults bounds the reported faults: an entirely different text has one in every line.
const maxFaults = 100

// A FaultError is one fault of a text, with its line: 0 for the whole text.
type FaultError struct {
	limit.FieldError

	Line int
}

// Error returns line, field, problem and the allowed values.
func (f *FaultError) Error() string {
	if f.Line == 0 {
		return f.FieldError.Error()
	}
	return fmt.Sprintf("line %d: %s", f.Line, f.FieldError.Error())
}

// Parse reads quotas from YAML, which includes JSON. An empty text is no quotas, and {} are quotas without bounds; see Quotas.Given. It
// checks only the form: Quotas.Validate, which knows the limit, checks the ranges. The error joins a *FaultError for each fault.
func Parse(text []byte) (limit.Quotas, error) {
	fault := func(line int, problem, allowed string) (limit.Quotas, error) {
		return limit.Quotas{}, &FaultError{limit.FieldError{Field: root, Problem: problem, Allowed: allowed}, line}
	}
	if len(text) > MaxText {
		return fault(0, fmt.Sprintf("is longer than %d bytes", MaxText), "")
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	var document, second yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return limit.Quotas{}, nil
	} else if err != nil {
		return fault(0, "is not valid YAML: "+yamlProblem(err), "")
	}
	if err := decoder.Decode(&second); err == nil {
		return fault(second.Line, "holds a second document", "one")
	} else if !errors.Is(err, io.EOF) {
		return fault(0, "is not valid YAML: "+yamlProblem(err), "")
	}
	q, faults := Decode(document.Content[0])
	if len(faults) > 0 {
		errs := make([]error, len(faults))
		for i, f := range faults {
			errs[i] = f
		}
		return limit.Quotas{}, errors.Join(errs...)
	}
	return q, nil
}

// Decode is Parse for a node of a larger text. Its faults have the lines of that text.
func Decode(n *yaml.Node) (limit.Quotas, []*FaultError) {
	var r reader
	q := r.quotas(n)
	if len(r.faults) > maxFaults {
		more := &FaultError{limit.FieldError{Field: root, Problem: "has more faults"}, r.faults[maxFaults].Line}
		r.faults = append(r.faults[:maxFaults:maxFaults], more)
	}
	if len(r.faults) > 0 {
		return limit.Quotas{}, r.faults
	}
	return q, nil
}

// root begins the fields of faults.
const root = "quotas"

// yamlProblem returns a parser's message in one line of readable length.
func yamlProblem(err error) string {
	text := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " ")
	if len(text) > 200 || unprintable.MatchString(text) {
		return "it cannot be read"
	}
	return text
}

var unprintable = regexp.MustCompile(`[^\x20-\x7e]`)
