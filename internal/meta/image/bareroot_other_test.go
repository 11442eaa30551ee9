//go:build !linux

package image

// becomeProgram is for Linux: elsewhere there is no bare root.
func becomeProgram(string) {}
