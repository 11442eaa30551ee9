// Package listen opens the addresses at which the proxies serve, and keeps strangers out.
//
// An address is "unix:/path/to/socket" or "HOST:PORT". Unix sockets and loopback addresses
// need no login: whoever reaches them is in the same pod. Any other address needs a token,
// which callers send as "Bearer TOKEN". A token that is set is asked for everywhere.
//
// A page in a browser of the same machine is a stranger, too: see Names.Problem.
package listen
