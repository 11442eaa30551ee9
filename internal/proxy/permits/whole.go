package permits

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
)

// A whole is an integer in a request, in any notation: 2, 2.0 or 2e0, as JSON Schema has it for "integer".
type whole int

// UnmarshalJSON implements json.Unmarshaler.
func (w *whole) UnmarshalJSON(raw []byte) error {
	n, ok := costrule.Integer(string(raw))
	if !ok {
		what := map[byte]string{'"': "text", '{': "object", '[': "list", 't': "truth value", 'f': "truth value"}[raw[0]]
		if what == "" {
			what = fmt.Sprintf("number %.40s", raw)
		}
		return &json.UnmarshalTypeError{Value: what, Type: reflect.TypeFor[whole]()}
	}
	*w = whole(n)
	return nil
}
