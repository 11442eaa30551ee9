// Package payload combines the records of messages into bodies of requests: it groups them by destination, joins them in a format, and
// compresses.
package payload
