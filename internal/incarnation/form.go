package incarnation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
)

// maxBytes exceeds the size of any file: the requests of four last states, and names.
const maxBytes = 64 << 10

// A form is the content of the file, after a line with its length and checksum.
type form struct {
	// Pool and ID identify the owner of the last states.
	Pool string `json:"pool"`
	ID   string `json:"id"`
	// Boot, Device and Inode identify the place where the lock is valid.
	Boot       string               `json:"boot"`
	Device     uint64               `json:"device"`
	Inode      uint64               `json:"inode"`
	LastStates []protocol.LastState `json:"wills"`
}

const head = "numathrottle 1 %08x %d\n"

var errCut = errors.New("it was not written to its end")

// encode returns the bytes of the file.
func (f *form) encode() ([]byte, error) {
	body, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, head, crc32.ChecksumIEEE(body), len(body)), body...), nil
}

// decode parses a file; bytes beyond the length in it belong to an older form.
func decode(b []byte) (f form, err error) {
	line, rest, ok := bytes.Cut(b, []byte("\n"))
	var sum uint32
	var length int
	if !ok {
		return f, errCut
	}
	if _, err := fmt.Sscanf(string(line)+"\n", head, &sum, &length); err != nil {
		return f, fmt.Errorf("it begins with %.40q", line)
	}
	if length < 0 || length > len(rest) || crc32.ChecksumIEEE(rest[:length]) != sum {
		return f, errCut
	}
	if err := json.Unmarshal(rest[:length], &f); err != nil {
		return form{}, err
	}
	return f, nil
}

// same reports whether the last states belong to the process in the place of other.
func (f *form) same(other *form) bool {
	return f.Pool == other.Pool && f.ID == other.ID && f.Boot == other.Boot && f.Device == other.Device && f.Inode == other.Inode
}
