// Package console is a page for operators: it shows the pools of a store as they move, and changes their pauses
// and limits.
//
// It knows nothing but what the store tells. While somebody looks at a pool, one poller asks for its record once
// a second, whoever else looks at it. What differs from the answer before is an event. What was seen is kept in memory:
// a console that is restarted has no past.
//
// # What keeps it safe
//
// Without a token it only shows, and listens on loopback alone. With one, everything but the page itself needs a
// session, which the token opens. The token comes in the body of a request, never in a URL, and is compared
// in constant time. A session is a word that only the page was told, and that each of its requests repeats in a header: a cookie
// would be sent to every port of the same host. Requests of other sites are refused, and on loopback those for other hosts, so that
// no page elsewhere can reach it, also by a name of its own. The page has one script and one style of its own, by a nonce, and
// loads nothing from anywhere.
package console
