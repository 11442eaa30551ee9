// Package dialguard decides which addresses a program may dial: those of servers on the internet, and those that its configuration allows.
// It checks the dialled address, after name resolution, including every form of IPv6 that embeds an IPv4 address.
package dialguard
