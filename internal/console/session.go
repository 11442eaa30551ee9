package console

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"maps"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
)

// Sessions are bounded in duration and number.
const (
	sessionFor   = 12 * time.Hour
	mostSessions = 200
)

// wordHeader is the header in which every request of a session repeats its word. A cookie would be sent to every other port of the same
// host, too; the page stores the word where only its own origin can read it.
const wordHeader = "X-Numathrottle-Word"

// MinTokenBytes is the length of the shortest token.
const MinTokenBytes = listen.MinTokenBytes

// A session is one page that has shown the token.
type session struct {
	by    string // the user, by their own account
	ends  time.Time
	token [sha256.Size]byte // the hash of the token that was shown: the session ends when the token changes
}

// sessions are the sessions of a console.
type sessions struct {
	token listen.Token
	any   bool // there is a token
	now   func() time.Time

	mu     sync.Mutex
	open   map[[sha256.Size]byte]session // by the hash of the word
	failed map[netip.Prefix][]time.Time  // times of recent wrong tokens, by sender
}

func newSessions(token listen.Token) *sessions {
	return &sessions{
		token: token, any: token.Set(), now: time.Now,
		open: map[[sha256.Size]byte]session{}, failed: map[netip.Prefix][]time.Time{},
	}
}

// After mostTries wrong tokens in triesIn, further ones from the same address get another answer and no log line. The right token always
// works: it is too long to be guessed, and behind a proxy all logins come from one address.
const (
	mostTries     = 10
	triesIn       = time.Minute
	mostAddresses = 10_000 // that are remembered
)

// addressOf returns the source of a request: an address, or the IPv6 prefix of one household or machine.
func addressOf(r *http.Request) netip.Prefix {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := at.Addr().WithZone("").Unmap(), 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.Prefix(bits)
	return p
}

// tired reports whether the source of a request sent too many wrong tokens lately.
func (s *sessions) tired(r *http.Request) bool {
	from := addressOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	tries := s.failed[from]
	return len(tries) >= mostTries && s.now().Sub(tries[0]) < triesIn
}

// failure records a wrong token. s.mu is held.
func (s *sessions) failure(from netip.Prefix) {
	now := s.now()
	if _, known := s.failed[from]; !known && len(s.failed) >= mostAddresses {
		maps.DeleteFunc(s.failed, func(_ netip.Prefix, tries []time.Time) bool { return now.Sub(tries[len(tries)-1]) >= triesIn })
		for other := range s.failed {
			if len(s.failed) < mostAddresses {
				break
			}
			delete(s.failed, other)
		}
	}
	s.failed[from] = append(s.failed[from], now)
	s.failed[from] = s.failed[from][max(len(s.failed[from])-mostTries, 0):]
}

// begin opens a session if the token is right, and returns its word.
func (s *sessions) begin(r *http.Request, token, by string) (o session, word string, ok bool) {
	sum := sha256.Sum256([]byte(token))
	want, usable := s.token.Sum()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !usable || subtle.ConstantTimeCompare(sum[:], want[:]) != 1 {
		s.failure(addressOf(r))
		return session{}, "", false
	}
	now := s.now()
	for id, o := range s.open {
		if !now.Before(o.ends) || len(s.open) >= mostSessions {
			delete(s.open, id)
		}
	}
	o, word = session{by: by, ends: now.Add(sessionFor), token: sum}, rand.Text()
	s.open[sha256.Sum256([]byte(word))] = o
	return o, word, true
}

// of returns the session of a request, and lets its connection last.
func (s *sessions) of(r *http.Request) (session, bool) {
	word := r.Header.Get(wordHeader)
	want, usable := s.token.Sum()
	if word == "" || !usable {
		return session{}, false
	}
	s.mu.Lock()
	o, ok := s.open[sha256.Sum256([]byte(word))]
	s.mu.Unlock()
	ok = ok && o.token == want && s.now().Before(o.ends)
	if ok {
		listen.Admit(r.Context())
	}
	return o, ok
}

// end closes the session of a request.
func (s *sessions) end(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sha256.Sum256([]byte(r.Header.Get(wordHeader))))
}
