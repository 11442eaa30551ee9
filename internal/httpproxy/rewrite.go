package httpproxy

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
)

// rewrite says where a request goes. All but hop-by-hop headers goes on as it came, also what httputil.ReverseProxy takes out.
func (p *proxy) rewrite(r *httputil.ProxyRequest) {
	raw := rawPath(r.In)
	if !r.In.URL.IsAbs() {
		r.SetURL(p.upstream)
		if raw != "" {
			raw = strings.TrimSuffix(p.upstream.EscapedPath(), "/") + raw
		}
	}
	r.Out.URL.RawQuery, r.Out.URL.ForceQuery = r.In.URL.RawQuery, r.In.URL.ForceQuery
	if raw != r.Out.URL.EscapedPath() {
		p.keepPath(r.Out.URL, raw)
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := r.In.Header[name]; ok && !hasToken(r.In.Header["Connection"], name) {
			r.Out.Header[name] = values
		}
	}
	r.Out.Trailer = r.In.Trailer // which is complete only when the body has ended
	if p.readsUsage {
		r.Out.Header.Set("Accept-Encoding", "identity") // a usage that is packed cannot be read
	}
	if _, ok := r.In.Header["User-Agent"]; !ok {
		r.Out.Header.Set("User-Agent", "") // not that of net/http
	}
}

// rawPath is the path of a request as it came; empty for none.
func rawPath(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if _, rest, ok := strings.Cut(path, "://"); ok && r.URL.IsAbs() {
		i := strings.IndexByte(rest, '/')
		if i < 0 {
			return ""
		}
		path = rest[i:]
	}
	if !strings.HasPrefix(path, "/") {
		return ""
	}
	return path
}

// keepPath makes a URL with a path that net/url would write in another way, such as /a|b.
func (p *proxy) keepPath(u *url.URL, raw string) {
	switch {
	case raw == "":
	case strings.HasPrefix(raw, "//"), p.egress != nil && u.Scheme == "http":
		u.Opaque = "//" + u.Host + raw // written as an absolute URL, which every server takes
	default:
		u.Opaque = raw
	}
}

// isHandshake tells whether a request asks for a websocket. Whatever else asks for an upgrade is a request like others.
func isHandshake(r *http.Request) bool {
	upgrade := r.Header["Upgrade"]
	return r.Method == http.MethodGet && r.ContentLength == 0 && len(r.TransferEncoding) == 0 &&
		hasToken(r.Header["Connection"], "Upgrade") && len(upgrade) == 1 && strings.EqualFold(upgrade[0], "websocket")
}

// dropUpgrade takes out of a request that it asks for another protocol, which is for each hop to say.
func dropUpgrade(r *http.Request) {
	if isHandshake(r) {
		return
	}
	r.Header.Del("Upgrade")
	r.Header.Del("HTTP2-Settings")
}

// hasToken tells whether a header, such as Connection, lists a word.
func hasToken(values []string, word string) bool {
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(part), word) {
				return true
			}
		}
	}
	return false
}
