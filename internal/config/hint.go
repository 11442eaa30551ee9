package config

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

var (
	bareNumber = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9})?$`)
	days       = regexp.MustCompile(`^([0-9]{1,5}) ?(d|day|days|w|week|weeks)$`)
	longUnits  = regexp.MustCompile(`^([0-9]{1,9}) ?(s|sec|secs|second|seconds|m|min|mins|minute|minutes|h|hour|hours)$`)
	fraction   = regexp.MustCompile(`^[0-9]{0,6}\.[0-9]{1,6}$`)
	plainHost  = regexp.MustCompile(`^[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63}){1,6}(:443)?(/v[0-9])?/?$`)
	localHost  = regexp.MustCompile(`^(localhost|127\.0\.0\.1):[0-9]{2,5}(/v[0-9])?/?$`)
	hostPorts  = regexp.MustCompile(`^[A-Za-z0-9.-]{1,253}:(6379|26379|4222)(,[A-Za-z0-9.-]{1,253}:(6379|26379|4222))*$`)
)

// durationHint suggests the intended duration: 60 is 60s, and 1d is 24h. Empty: there is none.
func durationHint(text string) string {
	meant := ""
	if bareNumber.MatchString(text) {
		meant = text + "s"
	} else if m := days.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		if m[2][0] == 'w' {
			n *= 7
		}
		meant = fmt.Sprint(24*n, "h")
	} else if m := longUnits.FindStringSubmatch(text); m != nil {
		meant = m[1] + m[2][:1]
	}
	if meant == "" || meant == text || strings.Trim(meant, "0.hms") == "" {
		return ""
	}
	return "; did you mean " + meant + "?"
}

// fractionHint suggests a whole number of tokens per longer period for a fraction per second. Empty: there is none.
func fractionHint(text string) string {
	value, ok := new(big.Rat).SetString(text)
	if !fraction.MatchString(text) || !ok || value.Sign() <= 0 || value.IsInt() || !value.Denom().IsInt64() || value.Denom().Int64() > 1_000_000 {
		return ""
	}
	return fmt.Sprintf("; use max: %s, per: %ds", value.Num(), value.Denom().Int64())
}

// endpointHint suggests a scheme for a host without one. It shows only text that is certainly a name.
func endpointHint(text string) string {
	switch {
	case localHost.MatchString(text):
		return "; did you mean http://" + text + "?"
	case plainHost.MatchString(text):
		return "; did you mean https://" + text + "?"
	case text != "" && text != Redacted && !strings.Contains(text, "://"):
		return "; it lacks the scheme, http:// or https://"
	}
	return ""
}

// schemeHint suggests a scheme for an address without one. It shows the text only if it is certainly an address: anything else may be a
// secret.
func schemeHint(text string) string {
	if !hostPorts.MatchString(text) {
		return ""
	}
	scheme := "redis://"
	switch {
	case strings.HasSuffix(text, ":4222"):
		scheme = "nats://"
	case strings.HasSuffix(text, ":26379"):
		return "; did you mean redis+sentinel://" + text + "/MASTER?"
	case strings.Contains(text, ","):
		scheme = "redis+cluster://"
	}
	return "; did you mean " + scheme + text + "?"
}
