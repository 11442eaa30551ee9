package protocol

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A File is the document "file": the settings that the processors of a pool take from the newest of their settings files. It replaces
// the settings at their start. An operator's override, or changed quota, comes first. The zero File is none.
//
// The pool orders files by when it first had them. Count is the number of the one in force, and Seen has those before it. So a processor
// knows that its file is older, with any clocks, and also after restarts.
type File struct { //nolint:recvcheck // pooldoc.Doc takes body, and Fits changes its copy
	// Name is the base name of the file, up to 64 bytes of text, and Hash are 8 hex digits of its settings. An empty Hash: no file counts.
	Name, Hash string
	// Max per Per is the limit, as in an Override; Max 0: the file has none. Quotas are all quotas; nil: it has none.
	Max    int
	Per    time.Duration
	Quotas *limit.Quotas
	// LogLevel is debug, info, warn or error; empty: the default.
	LogLevel string
	// Prices are a program's prices, in its own form; empty: it has none.
	Prices json.RawMessage
	// Count numbers the files of the pool, from 1 on. Seen are the hashes of earlier ones, up to maxSeen, the oldest first.
	Count int
	Seen  []string
}

// Bounds of a File.
const (
	maxSeen     = 20
	maxFileName = 64
	fileDigits  = 8
	maxFiles    = 1_000_000_000
)

// String names the file and its content, such as numathrottle.yaml@1f3c5d7e.
func (f *File) String() string { return f.Name + "@" + f.Hash }

// Fits reports whether a document can hold the file's settings, whatever files were there before it.
func (f File) Fits() bool {
	f.Count, f.Seen = maxFiles, slices.Repeat([]string{strings.Repeat("0", fileDigits)}, maxSeen)
	_, err := f.body()
	return err == nil
}

// rate is the limit as the law takes it.
func (f *File) rate() ceiling.Rate { return ceiling.Rate{Max: int64(f.Max), Per: f.Per} }

// Validate returns a *RequestError for the first field out of bounds, or nil.
func (f *File) Validate() error {
	bad := func(field, value, allowed string) error {
		return &driver.RequestError{Field: field + " of the file", Value: fmt.Sprintf("%.80q", value), Allowed: allowed}
	}
	if err := (Override{Max: f.Max, Per: f.Per}).Validate(); err != nil {
		return err
	}
	switch {
	case len(f.Name) > maxFileName || driver.ValidateNote(f.Name) != nil:
		return bad("Name", f.Name, "up to 64 bytes of text")
	case f.Hash != "" && !isFileHash(f.Hash):
		return bad("Hash", f.Hash, "8 hex digits")
	case !slices.Contains([]string{"", "debug", "info", "warn", "error"}, f.LogLevel):
		return bad("LogLevel", f.LogLevel, "debug, info, warn or error")
	case f.Count < 0 || f.Count > maxFiles:
		return bad("Count", fmt.Sprint(f.Count), fmt.Sprint("0 to ", maxFiles))
	case len(f.Seen) > maxSeen || slices.ContainsFunc(f.Seen, func(h string) bool { return !isFileHash(h) }):
		return bad("Seen", strings.Join(f.Seen, " "), fmt.Sprint("up to ", maxSeen, " hashes of 8 hex digits"))
	case f.Quotas != nil:
		return inBounds(f.Quotas)
	}
	return nil
}

func isFileHash(text string) bool {
	return len(text) == fileDigits && strings.Trim(text, "0123456789abcdef") == ""
}

// The form of the document.
type fileJSON struct {
	Name     string          `json:"name,omitempty"`
	Hash     string          `json:"hash,omitempty"`
	Max      int             `json:"max,omitempty"`
	Per      string          `json:"per,omitempty"`
	Quotas   *limit.Quotas   `json:"quotas,omitempty"`
	LogLevel string          `json:"logLevel,omitempty"`
	Prices   json.RawMessage `json:"prices,omitempty"`
	Count    int             `json:"count"`
	Seen     []string        `json:"seen,omitempty"`
}

// body returns the document's body. The error is for a File out of bounds, and for one that is larger than a document.
func (f File) body() ([]byte, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	j := fileJSON{f.Name, f.Hash, f.Max, "", f.Quotas, f.LogLevel, f.Prices, f.Count, f.Seen}
	if f.Per != 0 {
		j.Per = f.Per.String()
	}
	body, err := json.Marshal(j)
	if err == nil && len(body) > wire.MaxDocumentBytes {
		err = &driver.RequestError{Field: "File", Value: fmt.Sprint(len(body), " bytes of settings"), Allowed: fmt.Sprint("at most ", wire.MaxDocumentBytes)}
	}
	return body, err
}

// parseFile reads a document's body. An unknown field is an error: a later release may count by it.
func parseFile(body []byte) (f File, err error) {
	var j fileJSON
	if err := decodeStrictly(body, &j); err != nil {
		return f, fmt.Errorf("consensus: the document %q has no settings of a file: %.200s", fileDocument, err.Error())
	}
	f = File{Name: j.Name, Hash: j.Hash, Max: j.Max, Quotas: j.Quotas, LogLevel: j.LogLevel, Prices: j.Prices, Count: j.Count, Seen: j.Seen}
	if j.Per != "" {
		if f.Per, err = time.ParseDuration(j.Per); err != nil || f.Per == 0 {
			return File{}, &driver.RequestError{
				Field: "per of the document " + fileDocument, Value: fmt.Sprintf("%.40q", j.Per), Allowed: "a duration such as 1m",
			}
		}
	}
	if err := f.Validate(); err != nil {
		return File{}, fmt.Errorf("consensus: the document %q: %w", fileDocument, err)
	}
	return f, nil
}

// numberOf returns the number of the newest file with a hash; ok is false for one that the pool has not seen.
func (f *File) numberOf(hash string) (number int, ok bool) {
	if f.Hash == hash {
		return f.Count, true
	}
	for i, seen := range slices.Backward(f.Seen) {
		if seen == hash {
			return f.Count - len(f.Seen) + i, true
		}
	}
	return 0, false
}

// followedBy returns the document after another file has come. others are files of processors that the pool has not had: they are older,
// for they were there before.
func (f *File) followedBy(next File, others []string) File {
	var seen []string
	for _, hash := range others {
		if _, known := f.numberOf(hash); !known && hash != next.Hash && !slices.Contains(seen, hash) {
			seen = append(seen, hash)
		}
	}
	seen = append(seen, f.Seen...)
	if f.Hash != "" {
		seen = append(seen, f.Hash)
	}
	next.Count, next.Seen = f.Count+1, seen[max(0, len(seen)-maxSeen):]
	return next
}
