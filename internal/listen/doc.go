// Package listen opens the addresses of the proxies, and keeps strangers out.
//
// An address is "unix:/path/to/socket" or "HOST:PORT". Unix sockets and loopback addresses need no login: their callers are in the same
// pod. Any other address needs a token, which callers send as "Bearer TOKEN". If a token is set, all addresses require it.
//
// A page in a browser on the same machine is a stranger, too: see Names.Problem.
package listen
