package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
)

// announcedFor is how long a limit that the called service has announced counts: it comes again with each answer, and an old one says little.
const announcedFor = 5 * time.Minute

// lowFor is how long the lowest of several counts: models or gateways that share a limit may announce theirs in turn.
const lowFor = 5 * time.Second

// An announced is a limit that the called service has announced to this process, in tokens per Per, and when.
type announced struct{ tokens, since int64 }

// at returns the announced limit that counts at a time; 0: none.
func (a *announced) at(now int64) int64 {
	if now-a.since > int64(announcedFor) {
		return 0
	}
	return a.tokens
}

// note takes a limit that the service announces now.
func (a *announced) note(tokens, now int64) {
	if a.tokens == 0 || tokens <= a.tokens || now-a.since >= int64(lowFor) {
		*a = announced{tokens, now}
	}
}

// announce is hook.Announce.
func announce(l Limiter, tokens int64) {
	if t, ok := l.(*Throttle); ok {
		t.gate.Lock()
		defer t.gate.Unlock()
		t.announced.note(min(max(tokens, 1), maxTokens), t.gate.Now())
	}
}

// following is how a Limit follows what the called service announces; see ceiling.Config. The zero value does not.
type following struct {
	follows bool
	first   int64
}

// follow is hook.Follow.
func follow(l Limit, first int64) Limit {
	l.following = following{true, min(max(first, 0), maxTokens)}
	return l
}

// into completes a ceiling.Config.
func (f following) into(c ceiling.Config) ceiling.Config {
	c.Follows, c.First = f.follows, f.first
	return c
}
