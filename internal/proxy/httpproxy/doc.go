// Package httpproxy is httpthrottle as a proxy, for HTTP clients in any language.
//
// As a reverse proxy (Config.Upstream) it stands in front of one service, and a client only changes its base URL. As a forward proxy
// (Config.Forward) it is the proxy that HTTP_PROXY names. Each request that it sends has drawn a permit. It waits out refusals, and takes
// the real cost from the response; see package httpthrottle.
//
// A CONNECT, with which clients reach https through a forward proxy, draws once for its connection. Its content is encrypted and not
// counted: for https the reverse proxy is better.
//
// A body that fits into BodyBuffer is read before its request waits, so that it can be sent again and its cost is known. A larger one is
// streamed, and sent once. Responses are streamed. A call that is not sent gets an error of package proxy.
package httpproxy
