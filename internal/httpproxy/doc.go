// Package httpproxy is httpthrottle as a proxy, for HTTP clients in any language.
//
// As a reverse proxy (Config.Upstream) it stands for one service, and a client only changes its
// base URL. As a forward proxy (Config.Forward) it is what HTTP_PROXY names. Each request that it
// sends has drawn a permit, refusals are waited out, and the real cost is taken from the answer;
// see package httpthrottle.
//
// A CONNECT, which is how clients reach https through a forward proxy, draws once for its
// connection. What is said inside is encrypted and not counted: for https the reverse proxy is
// the better one.
//
// A body that fits into BodyBuffer is read before its request waits, so that it can be sent again
// and its cost be told. A larger one is passed on as it comes, and sent once. Answers are passed on
// as they come. A call that is not sent gets an error of package apierror.
package httpproxy
