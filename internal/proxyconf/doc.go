// Package proxyconf has what the proxies share: the settings of their limits and of where they listen.
//
// A proxy has one limit that costs are drawn from, and beside it, where they are set, one on requests and one on
// calls in flight.
package proxyconf
