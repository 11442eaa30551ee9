package console

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"sync"
	"time"
)

// How long a session lasts, and how many there may be.
const (
	sessionFor   = 12 * time.Hour
	mostSessions = 200
)

const cookieName = "numathrottle_console"

// MinTokenBytes is the length of the shortest token.
const MinTokenBytes = 16

// A session is one browser that has shown the token.
type session struct {
	word string // that every change repeats
	by   string // who says to sit there
	ends time.Time
}

// The sessions of a console.
type sessions struct {
	token [sha256.Size]byte
	any   bool // there is a token
	now   func() time.Time

	mu     sync.Mutex
	open   map[[sha256.Size]byte]session // by the hash of the cookie
	failed []time.Time                   // of wrong tokens lately
}

func newSessions(token string) *sessions {
	return &sessions{token: sha256.Sum256([]byte(token)), any: token != "", now: time.Now, open: map[[sha256.Size]byte]session{}}
}

// Whoever tries tokens gets so many tries in a while, and all who do together. The right one is refused then, too.
const (
	mostTries = 10
	triesIn   = time.Minute
)

// tired tells whether there were too many wrong tokens lately.
func (s *sessions) tired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.failed) > 0 && s.now().Sub(s.failed[0]) >= triesIn {
		s.failed = s.failed[1:]
	}
	return len(s.failed) >= mostTries
}

// begin opens a session if the token is right.
func (s *sessions) begin(w http.ResponseWriter, r *http.Request, token, by string) (session, bool) {
	sum := sha256.Sum256([]byte(token))
	right := subtle.ConstantTimeCompare(sum[:], s.token[:]) == 1 && s.any
	s.mu.Lock()
	defer s.mu.Unlock()
	if !right {
		s.failed = append(s.failed, s.now())
		return session{}, false
	}
	now, key := s.now(), rand.Text()
	for id, o := range s.open {
		if !now.Before(o.ends) || len(s.open) >= mostSessions {
			delete(s.open, id)
		}
	}
	o := session{word: rand.Text(), by: by, ends: now.Add(sessionFor)}
	s.open[sha256.Sum256([]byte(key))] = o
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // without TLS, as on loopback, a Secure one would not come back
		Name: cookieName, Value: key, Path: "/", MaxAge: int(sessionFor / time.Second), HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
	return o, true
}

// of returns the session of a request.
func (s *sessions) of(r *http.Request) (session, bool) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return session{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.open[sha256.Sum256([]byte(cookie.Value))]
	return o, ok && s.now().Before(o.ends)
}

// end closes the session of a request.
func (s *sessions) end(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieName); err == nil {
		s.mu.Lock()
		delete(s.open, sha256.Sum256([]byte(cookie.Value)))
		s.mu.Unlock()
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode}) //nolint:gosec // empty
}

// matches tells whether a request repeats the word of its session.
func (o *session) matches(word string) bool {
	return subtle.ConstantTimeCompare([]byte(word), []byte(o.word)) == 1
}
