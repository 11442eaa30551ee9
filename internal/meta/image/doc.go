// Package image holds the tests of the shipped images: the programs run in a root that contains only the files of their image.
//
// They need no container engine. scripts/build.sh builds the programs, as for images and releases. Each runs as the Dockerfile specifies:
// with its files and variables, and as its user, who may not write to that root. Only root can start them so: others skip the tests.
package image
