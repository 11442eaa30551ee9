package consensus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A newsflash is what processors push to each other: the pauses as they are now, or the
// receipt of a processor that has stopped.
type newsflash struct {
	// from tells processes apart, so that nobody heeds what it has pushed itself.
	from    string
	version Version
	// notice is nil in a receipt.
	notice *notice
	// id is the processor whose receipt it is.
	id string
}

// newsJSON is the form of a newsflash.
type newsJSON struct {
	Form    int             `json:"form"`
	From    string          `json:"from"`
	Version uint64          `json:"version"`
	Pause   json.RawMessage `json:"pause,omitempty"`
	Receipt []byte          `json:"receipt,omitempty"` // an ID is any bytes
}

const newsForm = 1

// encode returns the news.
func (n *newsflash) encode() ([]byte, error) {
	j := newsJSON{Form: newsForm, From: n.from, Version: uint64(n.version), Receipt: []byte(n.id)}
	if n.notice != nil {
		body, err := n.notice.body()
		if err != nil {
			return nil, err
		}
		j.Pause = body
	}
	return json.Marshal(j)
}

// parseNews reads what encode returns. Anything else is none of this release's.
func parseNews(news []byte) (n newsflash, err error) {
	if len(news) > MaxNewsBytes {
		return n, fmt.Errorf("the size of news is %d, allowed: at most %d", len(news), MaxNewsBytes)
	}
	var j newsJSON
	if err := decodeStrictly(news, &j); err != nil {
		return n, fmt.Errorf("consensus: not news of this release: %.200s", err.Error())
	}
	n = newsflash{from: j.From, version: Version(j.Version), id: string(j.Receipt)}
	switch {
	case j.Form != newsForm || n.version == 0 || n.version > MaxVersion || !IsName(j.From):
		return n, errors.New("consensus: not news of this release")
	case len(j.Pause) > 0 && n.id == "":
		body, err := parseNotice(j.Pause)
		n.notice = &body
		return n, err
	case len(j.Pause) == 0 && IsName(n.id):
		return n, nil
	}
	return n, errors.New("consensus: news are neither a pause nor a receipt")
}

// decodeStrictly reads one JSON value of which every field must be known.
func decodeStrictly(text []byte, into any) error {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}
