// Package proxyconf has the common settings of the proxies: their limits and their listeners.
//
// A proxy has one limit for costs and, if set, one for requests and one for calls in flight.
package proxyconf
