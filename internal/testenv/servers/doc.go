// Package servers runs real Redis, NATS and nginx servers on loopback, for tests, benchmarks and the demo.
//
// Every Start function takes a directory for the server's files. It returns when the server answers, or with the reason why it does not, at
// the latest when the context ends. The context bounds only the start: a server lives until its Close, or until this process ends. Programs
// are started with a parent-death signal (on Linux), so that nothing outlives a process that was itself killed.
//
// Ports are reserved: until Close no other user of this package, in this or another process, gets the same port, even while the server is
// down. So a server can be killed and started again under its old address.
//
// Each server's methods may be called from several goroutines; those that change its state wait for one another.
//
// In tests, package testenv wraps the same servers with cleanup at the end of the test.
package servers
