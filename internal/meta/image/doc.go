// Package image holds the tests of what is shipped: the Dockerfile, and the programs in a root in
// which there is nothing but what an image has. No container engine is needed for them.
//
// The programs are built by scripts/build.sh, as the images and releases are, and run as the
// Dockerfile says: with its files and variables, as its user, in a root that is mounted read-only. For that the test
// needs to be root, or a kernel that gives user namespaces to everyone; else it is skipped.
package image
