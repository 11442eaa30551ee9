// Package render makes URLs, headers and bodies of requests from messages, by text/template.
//
// # Confinement
//
// A message can choose neither the host that its request goes to nor leave the
// path that the operator has set: scheme, host and the beginning of the path stand before the first
// action of the template. What an action adds is escaped for the place at which it
// stands, path or query, unless it ends in the function raw. The result is checked again: it
// begins with the same text, parses to the same host, and its path, decoded as often as that
// changes anything, has no segment "." or "..", no backslash and no control character.
// Headers are checked for control characters, which would begin another header.
package render
