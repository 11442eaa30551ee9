package consensus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A Pusher is a Store that can also carry news to all processors of a pool at once. News
// are hints, and never the truth: each is delivered at most once, perhaps late, and the
// channel may be silent for long without any error. All methods may be called from any
// number of goroutines and processes at once. The stores of this project are Pushers.
type Pusher interface {
	// Push sends news of at most MaxNewsBytes to everybody who watches the pool, the
	// sender included. It returns when they are on their way.
	// Errors: *RequestError for a name that no pool can have or news of a wrong size;
	// anything else is the store's, and passing: whether anybody heard it is not known.
	Push(ctx context.Context, pool string, news []byte) error

	// Watch calls heard with all news of a pool from about now on, one at a time, until stop
	// is called, whatever becomes of the connection meanwhile. heard may keep news. It
	// may call Push, but should return soon: what comes meanwhile may be lost. stop
	// waits for nothing, and may be called more than once; one more call of heard may come
	// after it. ctx bounds Watch alone.
	// Errors: *RequestError for a name that no pool can have; ErrNoPush; anything else is
	// the store's, and passing. A server that is away is no error.
	Watch(ctx context.Context, pool string, heard func(news []byte)) (stop func(), err error)
}

// MaxNewsBytes is the size of the largest news.
const MaxNewsBytes = 8192

// ErrNoPush is wrapped by the error of a Pusher around a Store that is none.
var ErrNoPush = errors.New("consensus: the store has no channel for news")

// ValidateNews returns a *RequestError for news that no Pusher sends, or nil. Every Pusher
// calls it first in Push.
func ValidateNews(pool string, news []byte) error {
	if err := ValidatePool(pool); err != nil {
		return err
	}
	if len(news) == 0 || len(news) > MaxNewsBytes {
		return &RequestError{"News", fmt.Sprint(len(news), " bytes"), fmt.Sprint("1 to ", MaxNewsBytes, " bytes")}
	}
	return nil
}

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
		return n, outside("the size of news", fmt.Sprint(len(news)), fmt.Sprint("at most ", MaxNewsBytes))
	}
	var j newsJSON
	if err := decodeStrictly(news, &j); err != nil {
		return n, fmt.Errorf("consensus: not news of this release: %.200s", err.Error())
	}
	n = newsflash{from: j.From, version: Version(j.Version), id: string(j.Receipt)}
	switch {
	case j.Form != newsForm || n.version == 0 || n.version > maxVersion || !isName(j.From):
		return n, errors.New("consensus: not news of this release")
	case len(j.Pause) > 0 && n.id == "":
		body, err := parseNotice(j.Pause)
		n.notice = &body
		return n, err
	case len(j.Pause) == 0 && isName(n.id):
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
