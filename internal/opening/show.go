package opening

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/config"
)

// Show writes settings without secrets, for a program of this module. Each setting that differs from its zero value is a line of YAML, with
// a comment about its source. The error is that of w.
func Show[C any](w io.Writer, fields []config.Field[C], c C, r *config.Reading) error {
	var b strings.Builder
	for _, s := range config.Show(fields, c) {
		value := s.Value
		if value != config.Redacted {
			value = strconv.Quote(value)
		}
		fmt.Fprintf(&b, "%s: %s  # %s\n", s.Key, value, origin(r, s.Key))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// origin returns the source of a setting: a variable, a flag, a file and line, or the rule that fills it in.
func origin(r *config.Reading, key string) string {
	login := key == "storeUsername" || key == "storePassword" || key == "storeToken"
	switch source := r.Source(key); {
	case source != "":
		return source
	case login && r.Source("store") != "": // it stood before the @
		return r.Source("store")
	case key == "pool" && inNumaflow(), key == "id" && os.Getenv("NUMAFLOW_POD") != "":
		return "from Numaflow's variables"
	case key == "id":
		return "the host name"
	}
	return "default"
}
