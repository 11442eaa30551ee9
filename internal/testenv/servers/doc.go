// Package servers runs real Redis, NATS and nginx servers on loopback, for tests, benchmarks and the demo.
//
// Every Start function takes a directory in which the server keeps its files, and returns when the server answers or
// with the reason why it does not, at the latest when the context ends. The context bounds the start only: a server
// lives until its Close, or until this process ends. Programs are started with a parent-death signal (on Linux), so
// that nothing outlives a process that was itself killed.
//
// Ports are reserved: no other user of this package, in this process or in another one, is given the same port until
// Close, even while the server is down. A server can therefore be killed and started again under its old address.
//
// Each server's methods may be called from several goroutines; those that change its state wait for one another.
//
// In tests, package testenv wraps the same servers with cleanup at the end of the test.
package servers
