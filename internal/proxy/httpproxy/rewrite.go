package httpproxy

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
)

// rewrite sets the target of a request. All except hop-by-hop headers is passed on unchanged, including headers that httputil.ReverseProxy
// removes.
func (p *handler) rewrite(r *httputil.ProxyRequest) {
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
		if values, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = values
		}
	}
	r.Out.Trailer = r.In.Trailer // it is complete only when the body has ended
	if p.readsUsage {
		r.Out.Header.Set("Accept-Encoding", "identity") // a compressed usage cannot be read
	}
	if _, ok := r.In.Header["User-Agent"]; !ok {
		r.Out.Header.Set("User-Agent", "") // not that of net/http
	}
}

// rawPath returns the path of a request as it came; empty for none.
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

// keepPath sets a URL's path that net/url would write differently, such as /a|b.
func (p *handler) keepPath(u *url.URL, raw string) {
	switch {
	case raw == "":
	case strings.HasPrefix(raw, "//"), p.egress != nil && u.Scheme == "http":
		u.Opaque = "//" + u.Host + raw // written as an absolute URL, which every server accepts
	default:
		u.Opaque = raw
	}
}

// isHandshake reports whether a request asks for a websocket. Requests for other upgrades are treated like ordinary ones.
func isHandshake(r *http.Request) bool {
	upgrade := r.Header["Upgrade"]
	return r.Method == http.MethodGet && r.ContentLength == 0 && len(r.TransferEncoding) == 0 &&
		hasToken(r.Header["Connection"], "Upgrade") && len(upgrade) == 1 && strings.EqualFold(upgrade[0], "websocket")
}

// dropHops removes the headers that end at the proxy: those that Connection names, and the request for another protocol. The rules then read
// the same headers as the service.
func dropHops(r *http.Request) {
	handshake := isHandshake(r)
	for _, value := range r.Header["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			switch name = http.CanonicalHeaderKey(strings.TrimSpace(name)); {
			case name == "Connection", name == "Te", name == "Upgrade" && handshake: // the reverse proxy needs them
			default:
				delete(r.Header, name)
			}
		}
	}
	if !handshake {
		r.Header.Del("Upgrade")
		r.Header.Del("HTTP2-Settings")
	}
}

// hasToken reports whether a header, such as Connection, lists a word.
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
