// Package release holds the tests of the scripts for builds, checks and releases, and of the workflows that run them. `make lint` runs the
// linters of workflows and scripts.
package release
