package render

import "bytes"

// A Layout is a format with the texts around and between its records. Empty texts add nothing.
type Layout struct {
	Format Format
	// Prefix precedes the whole body of the format, and Suffix follows it.
	Prefix, Suffix string
	// Separator separates the records of Raw; the other formats have their own.
	Separator string
}

// overhead is how many bytes a body has per record besides the record itself.
func (l Layout) overhead() int { return l.Format.Overhead() + len(l.Separator) }

// frame is how many bytes a body has besides the records and their overhead. It is negative if a separator is longer than the texts around
// the records, because there is one separator less than records.
func (l Layout) frame() int {
	return l.Format.Frame() + len(l.Prefix) + len(l.Suffix) - len(l.Separator)
}

// Join returns the body of records that Format.Record has returned.
func (l Layout) Join(records [][]byte) []byte {
	var body []byte
	if l.Separator == "" {
		body = l.Format.Join(records)
	} else {
		body = bytes.Join(records, []byte(l.Separator))
	}
	if l.Prefix == "" && l.Suffix == "" {
		return body
	}
	return append(append([]byte(l.Prefix), body...), l.Suffix...)
}
