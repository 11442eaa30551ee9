package health

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
)

func (s *Server) handler(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /statusz", s.status)
	mux.Handle("GET /{$}", http.RedirectHandler("/statusz", http.StatusFound))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if problem := listen.Names(nil).Problem(withoutLink(r)); problem != "" {
			plain(w, http.StatusForbidden, problem+"\n")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// withoutLink returns a request that followed a link from another site as a same-site one: a link lets no page read the answer.
func withoutLink(r *http.Request) *http.Request {
	if r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document" {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Del("Sec-Fetch-Site")
	return r
}

func plain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) //nolint:gosec // plain text, which no browser sniffs; an error: the client has gone
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	var ready, waits strings.Builder
	for _, l := range s.limits() {
		to := &waits
		if l.Ready {
			to = &ready
		}
		fmt.Fprintf(to, "limit %q: %s\n", l.Name, cmp.Or(l.Why, l.NotReady))
	}
	if waits.Len() > 0 {
		plain(w, http.StatusServiceUnavailable, waits.String())
		return
	}
	plain(w, http.StatusOK, "ok\n"+ready.String())
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	st := Status{Now: time.Now().UTC(), Limits: s.limits()}
	if !wantsJSON(r) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_ = page.Execute(w, st) // the client has gone
		return
	}
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(st); err != nil {
		return // the client has gone
	}
}

// wantsJSON checks ?format, else the first choice in Accept.
func wantsJSON(r *http.Request) bool {
	if format := r.URL.Query().Get("format"); format != "" {
		return format == "json"
	}
	best, json := -1.0, false
	for _, accept := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(accept, ",") {
			kind, params, _ := strings.Cut(part, ";")
			q := 1.0
			for param := range strings.SplitSeq(params, ";") {
				if text, ok := strings.CutPrefix(strings.TrimSpace(param), "q="); ok {
					q, _ = strconv.ParseFloat(text, 64) // an invalid number is refused
				}
			}
			kind = strings.ToLower(strings.TrimSpace(kind))
			if (kind == "application/json" || kind == "text/html") && q > best {
				best, json = q, kind == "application/json"
			}
		}
	}
	return json && best > 0
}
