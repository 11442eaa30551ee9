// Package image holds the tests of the shipped images: the Dockerfile, and the programs in a root that contains only the files of an image.
// They need no container engine.
//
// The programs are built by scripts/build.sh, as for images and releases. They run as the Dockerfile specifies: with its files and
// variables, as its user, in a read-only root. The test needs to be root, or a kernel that gives user namespaces to everyone; else it is
// skipped.
package image
