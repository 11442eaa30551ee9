// Package pages holds the tests of the Markdown pages: their code compiles, their settings load, their links resolve, and their commands
// use existing targets, flags, variables and paths.
//
// bash runs the commands with stand-ins on its path, which record their calls. The tests run in the root of the repository.
package pages
