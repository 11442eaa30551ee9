// Package release holds the tests of how this project is built, checked and released: the workflows,
// the updates of dependencies, and the scripts that make the parts of a release.
package release
