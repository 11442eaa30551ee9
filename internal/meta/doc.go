// Package meta holds the tests of what is not Go code: the shipped images, the Markdown pages, the scripts for builds, checks and releases, and
// the workflows. They run in the root of the repository.
//
// The tests of images need no container engine. scripts/build.sh builds the programs, as for images and releases. Each runs as the
// Dockerfile specifies: with its files and variables, and as its user, who may not write to that root. Only root can start them so: others
// skip the tests.
//
// The code of the pages compiles, their settings load, their links resolve, and their commands use existing targets, flags, variables and
// paths. bash runs the commands with stand-ins on its path, which record their calls. `make lint` runs the linters of workflows and scripts.
package meta
