// Package payload puts the records of messages together to bodies of requests: it groups them
// by destination, joins them in a format, and compresses.
package payload
