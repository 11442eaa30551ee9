package health

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// checkSecrets refuses settings that the exporters would print when they cannot read them: headers contain tokens, and an endpoint may
// contain a password. The error shows none of it.
func checkSecrets() error {
	var errs []error
	for _, signal := range []string{"", "METRICS_", "TRACES_"} {
		name := "OTEL_EXPORTER_OTLP_" + signal + "ENDPOINT"
		if _, err := url.Parse(strings.TrimSpace(os.Getenv(name))); err != nil {
			errs = append(errs, fmt.Errorf("export: %s is no URL (not shown)", name))
		}
		name = "OTEL_EXPORTER_OTLP_" + signal + "HEADERS"
		if value := strings.TrimSpace(os.Getenv(name)); value != "" && !areHeaders(value) {
			errs = append(errs, fmt.Errorf("export: %s is not as it should be (not shown), allowed: name=value,name=value with values percent-encoded", name))
		}
	}
	return errors.Join(errs...)
}

func areHeaders(text string) bool {
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		_, err := url.PathUnescape(value)
		if !ok || err != nil || name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isTokenRune(r) }) {
			return false
		}
	}
	return true
}

// isTokenRune reports whether a header's name may contain r (RFC 9110, section 5.6.2).
func isTokenRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
