package payload

import "bytes"

// A Layout is a format with what stands around and between its records. The zero texts add nothing.
type Layout struct {
	Format Format
	// Prefix stands before the whole body of the format, and Suffix behind it.
	Prefix, Suffix string
	// Separator stands between the records of Raw; the other formats have their own.
	Separator string
}

// overhead is how many bytes a body has for each record beside the record itself.
func (l Layout) overhead() int { return l.Format.Overhead() + len(l.Separator) }

// frame is how many bytes a body has beside the records and their overhead. It is below zero where a separator is longer than what stands
// around them, for there is one less than there are records.
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
