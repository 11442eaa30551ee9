// Package release holds the tests of this project's build, checks and releases: the workflows, the updates of dependencies, and the scripts
// for the parts of a release.
package release
