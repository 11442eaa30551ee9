package render

import (
	"bytes"
	"compress/gzip"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// A Compression is a content coding.
type Compression string

// The codings.
const (
	NoCompression Compression = "none"
	Gzip          Compression = "gzip"
	Zstd          Compression = "zstd"
)

// A Compressor compresses bodies. It is safe for concurrent use.
type Compressor struct {
	coding Compression
	least  int
	zstd   *zstd.Encoder
}

// NewCompressor returns a Compressor for bodies of at least so many bytes.
func NewCompressor(coding Compression, least int) (*Compressor, error) {
	c := &Compressor{coding: coding, least: least}
	if coding == Zstd {
		var err error
		if c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20)); err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
	}
	return c, nil
}

// Compress returns the body to send and its content coding. The coding is empty for an unchanged body, which is short or would not become
// shorter.
func (c *Compressor) Compress(body []byte) (sent []byte, coding string) {
	if len(body) < c.least {
		return body, ""
	}
	switch c.coding {
	case Gzip:
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(body) // a bytes.Buffer takes everything
		_ = w.Close()
		sent = b.Bytes()
	case Zstd:
		sent = c.zstd.EncodeAll(body, nil)
	case NoCompression:
		return body, ""
	}
	if len(sent) == 0 || len(sent) >= len(body) {
		return body, ""
	}
	return sent, string(c.coding)
}
