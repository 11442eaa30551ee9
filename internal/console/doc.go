// Package console is a web page for operators: it shows the pools of a store live, and changes their pauses and limits.
//
// The store is its only source. While anybody views a pool, one poller reads its record once a second for all viewers. A difference from
// the previous answer is an event. The history is kept in memory: a restarted console has none.
//
// # Security
//
// Without a token the console is read-only and listens on loopback only. With one, everything but the page itself needs a session, which
// the token opens. The token comes in the body of a request, never in a URL, and is compared in constant time. A session is a random word
// that only the page receives. Each of its requests repeats the word in a header: a cookie would be sent to every port of the same host.
// Requests from other sites are refused. On loopback, so are requests for other hosts: no other page can reach the console, even through a
// DNS name of its own. The page has one inline script and one inline style, allowed by a nonce, and loads nothing else.
package console
