// Package dialguard says which addresses a program may dial: those of servers on the internet, and those that its
// configuration allows. It judges the address that is really dialled, after names were resolved, and every form of IPv6 in
// which an address of IPv4 can be written.
package dialguard
