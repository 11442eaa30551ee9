// Package meta holds the tests of images, Markdown pages, scripts and workflows. They run in the root of the repository.
//
// The tests of images need no container engine. scripts/build.sh builds the programs, as for images and releases. Each runs as the
// Dockerfile specifies: with its files and variables, and as its user, who may not write to that root. Only root can start them so: others
// skip the tests.
//
// The code of the pages compiles, their settings load and their links resolve. Their commands use existing targets, flags, variables and
// paths: bash runs them with stand-ins on its path, which record their calls. `make lint` runs the linters of workflows and scripts.
package meta
