package httpthrottle

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf16"
)

const (
	// mostUnpacked is how much of a compressed body is read, in bytes.
	mostUnpacked = 1 << 20
	// mostPacked is how often a body may be compressed.
	mostPacked = 2
)

// readable returns the body of an answer as UTF-8 text, without a byte-order mark or white space around it. It unpacks gzip and deflate
// that net/http has not undone; other compressions stay as they are. A body that is cut off is returned up to there.
func readable(body []byte, h http.Header) []byte {
	packed := strings.Split(strings.ToLower(strings.Join(h.Values("Content-Encoding"), ",")), ",")
	if len(packed) > mostPacked {
		packed = nil
	}
	for _, coding := range slices.Backward(packed) {
		switch strings.TrimSpace(coding) {
		case "gzip", "x-gzip":
			body = unpack(body, func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) })
		case "deflate": // zlib by the standard, and without its frame by custom
			whole := body
			if body = unpack(whole, zlib.NewReader); body == nil {
				body = unpack(whole, func(r io.Reader) (io.ReadCloser, error) { return flate.NewReader(r), nil })
			}
		}
	}
	if bytes.HasPrefix(body, []byte{0x1f, 0x8b}) { // gzip that does not say so
		body = unpack(body, func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) })
	}
	return bytes.TrimSpace(unmarked(body))
}

// unpack returns a body as far as it can be unpacked; nil for nothing.
func unpack(body []byte, open func(io.Reader) (io.ReadCloser, error)) []byte {
	r, err := open(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	defer r.Close()
	plain, err := io.ReadAll(io.LimitReader(r, mostUnpacked))
	if err != nil && len(plain) == 0 {
		return nil
	}
	return plain
}

// unmarked removes a byte-order mark, and converts to UTF-8 if the mark is of UTF-16.
func unmarked(body []byte) []byte {
	switch {
	case bytes.HasPrefix(body, []byte{0xef, 0xbb, 0xbf}):
		return body[3:]
	case bytes.HasPrefix(body, []byte{0xff, 0xfe}):
		return narrow(body[2:], binary.LittleEndian)
	case bytes.HasPrefix(body, []byte{0xfe, 0xff}):
		return narrow(body[2:], binary.BigEndian)
	}
	return body
}

func narrow(body []byte, order binary.ByteOrder) []byte {
	wide := make([]uint16, len(body)/2)
	for i := range wide {
		wide[i] = order.Uint16(body[2*i:])
	}
	return []byte(string(utf16.Decode(wide)))
}
