package config

import (
	"regexp"
	"strings"
)

// Clients of NATS and others accept a list of whole URLs: nats://a:4222,nats://b:4222. A store URL may be such a list, too. It is
// equivalent to the URL with all its hosts behind one scheme, which is its printed form.

// another matches the beginning of the next URL of a list. No user name or password can contain it: a slash must be percent-encoded there.
var another = regexp.MustCompile(`,[ \t]*([A-Za-z0-9+.-]{1,20})://`)

// joinList returns the scheme and the rest of a URL list as one URL. It drops spaces after the commas between hosts.
func joinList(name, rest string) (scheme, joined string, fault error) {
	heads := another.FindAllStringSubmatchIndex(rest, -1)
	if heads == nil {
		before, hosts, hasUser := cutLast(rest, "@")
		if hasUser {
			before += "@"
		}
		return name, before + tidyHosts(hosts), nil
	}
	scheme = name
	var user string
	var hosts []string
	from := 0
	for i := 0; i <= len(heads); i++ {
		part := rest[from:]
		if i < len(heads) {
			part = rest[from:heads[i][0]]
		}
		own, behind, hasUser := cutLast(part, "@")
		number := len(hosts) + 1
		switch {
		case hasUser && user != "" && own+"@" != user:
			return "", "", storeFault("the same user name and password for all hosts, or before the first alone", "has others before host %d", number)
		case hasUser:
			user = own + "@"
		}
		if i == len(heads) {
			hosts = append(hosts, behind)
			break
		}
		if strings.ContainsAny(behind, "?#") || strings.Contains(strings.TrimSuffix(behind, "/"), "/") {
			return "", "", storeFault("path and parameters behind the last host", "has a path or parameters behind host %d", number)
		}
		hosts = append(hosts, strings.Split(strings.TrimSuffix(behind, "/"), ",")...)
		next := rest[heads[i][2]:heads[i][3]]
		switch {
		case next == scheme:
		case scheme == "nats" && next == "tls", scheme == "tls" && next == "nats":
			scheme = "tls" // for all: no host's connection is less secure than its URL requires
		default:
			shown := "another scheme"
			if findScheme(next) != nil {
				shown = "the scheme " + quote(next)
			}
			return "", "", storeFault("the same scheme for all hosts, or before the first alone; tls:// and nats:// together mean tls://",
				"has %s before host %d", shown, len(hosts)+1)
		}
		from = heads[i][1]
	}
	return scheme, user + tidyHosts(strings.Join(hosts, ",")), nil
}

// tidyHosts drops the spaces after the commas of a list of hosts, which path and parameters may follow.
func tidyHosts(text string) string {
	end := len(text)
	if i := strings.IndexAny(text, "/?#"); i >= 0 {
		end = i
	}
	hosts := strings.Split(text[:end], ",")
	for i := 1; i < len(hosts); i++ {
		hosts[i] = strings.TrimLeft(hosts[i], " \t")
	}
	return strings.Join(hosts, ",") + text[end:]
}
