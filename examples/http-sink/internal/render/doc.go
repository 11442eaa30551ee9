// Package render makes requests from messages: URLs, headers and bodies by text/template. It groups the bodies by destination, joins them in a
// format, and compresses them.
//
// # Confinement
//
// A message cannot choose the host of its request or leave the operator's path: these come before the first action of the template. The
// output of an action is escaped for its place, path or query, unless the action ends in the function raw. The result
// is checked again. It must begin with the same text and parse to the same host. Its path, decoded until it no longer changes, must have no
// segment "." or "..", no backslash and no control character. Headers are checked for control characters, which would begin another header.
package render
