package render

import (
	"bytes"
	"encoding/json"
	"errors"
)

// A Format is how the records of one request form its body.
type Format string

// The formats.
const (
	// Single sends each record in a request of its own.
	Single Format = "single"
	// JSONArray sends an array of JSON records.
	JSONArray Format = "json-array"
	// NDJSON sends a line for each record, which is JSON.
	NDJSON Format = "ndjson"
	// Raw sends records one after the other, without separators.
	Raw Format = "raw"
)

// ContentType returns the media type of a body.
func (f Format) ContentType() string {
	switch f {
	case JSONArray:
		return "application/json"
	case NDJSON:
		return "application/x-ndjson"
	case Single, Raw:
	}
	return "application/octet-stream"
}

var errRecordNotJSON = errors.New("the record is not one JSON text")

// Record returns a record as part of a body. The error says that it cannot be one, and does not repeat it.
func (f Format) Record(record []byte) ([]byte, error) {
	switch f {
	case JSONArray, NDJSON:
		var b bytes.Buffer
		if json.Compact(&b, record) != nil || b.Len() == 0 {
			return nil, errRecordNotJSON
		}
		return b.Bytes(), nil
	case Single, Raw:
	}
	return record, nil
}

// Overhead is how many bytes a body has per record besides the record itself.
func (f Format) Overhead() int {
	if f == JSONArray || f == NDJSON {
		return 1
	}
	return 0
}

// Frame is how many bytes a body has besides the records and their Overhead.
func (f Format) Frame() int {
	if f == JSONArray {
		return 1 // two brackets, and one comma less than records
	}
	return 0
}

// Join returns the body of records that Record has returned.
func (f Format) Join(records [][]byte) []byte {
	switch f {
	case JSONArray:
		body := append([]byte{'['}, bytes.Join(records, []byte{','})...)
		return append(body, ']')
	case NDJSON:
		return append(bytes.Join(records, []byte{'\n'}), '\n')
	case Single, Raw:
	}
	if len(records) == 1 {
		return records[0]
	}
	return bytes.Join(records, nil)
}
