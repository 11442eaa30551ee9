package redisstore

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	// denied finds the forbidden command in an error of a server from version 6 on. Some servers report the whole name of a subcommand,
	// others only its first word.
	denied = regexp.MustCompile(`(?:NOPERM|ACL failure).*has no permissions to run the '([A-Za-z0-9_|-]+)' command`)
	// place finds the script and its line: all that a server reports about a command in a script.
	place = regexp.MustCompile(`([0-9a-f]{40}).*user_script:(\d+)`)
	// called finds the command in a line.
	called = regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)
)

// lacking returns the permission that an ACL user needs for an operation, from the server's error text; empty for another error.
func lacking(operation, text, prefix string) string {
	if m := denied.FindStringSubmatch(text); m != nil {
		command := strings.ToLower(m[1])
		if command == "cluster" { // of a server before 7
			command = "cluster|slots"
		}
		return "+" + command
	}
	inScript := strings.Contains(text, "The user executing the script can't")
	acl := inScript || strings.Contains(text, "NOPERM") || strings.Contains(text, "ACL failure")
	switch {
	case !acl:
		return ""
	case strings.Contains(text, "channel"):
		return "the channels &{" + prefix + ":*}:push*"
	case strings.Contains(text, " key"):
		return "the keys ~{" + prefix + ":*}:*"
	case !inScript:
		return "all that docs/stores.md lists"
	case strings.HasPrefix(text, "NUMATHROTTLE_GET"):
		return "+get"
	}
	if m := place.FindStringSubmatch(text); m != nil {
		lines := strings.Split(sources[m[1]], "\n")
		if n, err := strconv.Atoi(m[2]); err == nil && n >= 1 && n <= len(lines) {
			if c := called.FindStringSubmatch(lines[n-1]); c != nil {
				return "+" + strings.ToLower(c[1])
			}
		}
	}
	// The first command of a script is the only one that fails without a line.
	if operation == "reservation" {
		return "+hget"
	}
	return "+hmget"
}
