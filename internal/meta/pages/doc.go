// Package pages holds the tests of the Markdown pages: their code compiles, their settings load, their links lead somewhere,
// and their commands name targets, flags, variables and paths that exist.
//
// Commands are run by bash with stand-ins on its path, which write down how they were called. The tests run in the root of
// the repository.
package pages
