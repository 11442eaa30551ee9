package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A Notification is a message between processors (see Pusher): the present pauses, or the receipt
// of a processor that has stopped.
type Notification struct {
	// From identifies the process, so that nobody takes its own message.
	From    string
	Version driver.Version
	// Pauses is nil in a receipt.
	Pauses *pauseList
	// Id is the processor whose receipt it is.
	ID string
}

// notificationJSON is the form of a notification.
type notificationJSON struct {
	Form    int             `json:"form"`
	From    string          `json:"from"`
	Version uint64          `json:"version"`
	Pause   json.RawMessage `json:"pause,omitempty"`
	Receipt []byte          `json:"receipt,omitempty"` // an ID is any bytes
}

const notificationForm = 1

// Encode returns the notification in its pushed form.
func (n *Notification) Encode() ([]byte, error) {
	j := notificationJSON{Form: notificationForm, From: n.From, Version: uint64(n.Version), Receipt: []byte(n.ID)}
	if n.Pauses != nil {
		body, err := n.Pauses.body()
		if err != nil {
			return nil, err
		}
		j.Pause = body
	}
	return json.Marshal(j)
}

// ParseNotification reads what encode returns. Anything else is of another release.
func ParseNotification(news []byte) (n Notification, err error) {
	if len(news) > wire.MaxNewsBytes {
		return n, fmt.Errorf("the size of news is %d, allowed: at most %d", len(news), wire.MaxNewsBytes)
	}
	var j notificationJSON
	if err := decodeStrictly(news, &j); err != nil {
		return n, fmt.Errorf("consensus: not news of this release: %.200s", err.Error())
	}
	n = Notification{From: j.From, Version: driver.Version(j.Version), ID: string(j.Receipt)}
	switch {
	case j.Form != notificationForm || n.Version == 0 || n.Version > wire.MaxVersion || !wire.IsName(j.From):
		return n, errors.New("consensus: not news of this release")
	case len(j.Pause) > 0 && n.ID == "":
		body, err := parsePauseList(j.Pause)
		n.Pauses = &body
		return n, err
	case len(j.Pause) == 0 && wire.IsName(n.ID):
		return n, nil
	}
	return n, errors.New("consensus: news are neither a pause nor a receipt")
}

// decodeStrictly reads one JSON value, and refuses unknown fields. Its errors may quote a name of any length.
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

// PauseNotification returns the notification of a change of the document "pause", for Pusher.Push.
// from identifies the process. It fails for a document that this release cannot read.
func PauseNotification(from string, d *driver.DocumentReport) ([]byte, error) {
	n, err := parsePauseList(d.Body)
	if err != nil {
		return nil, err
	}
	flash := Notification{From: from, Version: d.Version, Pauses: &n}
	return flash.Encode()
}

// pushTimeout bounds one push, which is only a hint.
const pushTimeout = 500 * time.Millisecond

// Push pushes a notification. The error is ErrNoPush for a store that cannot.
func Push(ctx context.Context, s driver.Store, pool string, news []byte) error {
	store, ok := s.(driver.Pusher)
	if !ok {
		return driver.ErrNoPush
	}
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	return store.Push(ctx, pool, news)
}
