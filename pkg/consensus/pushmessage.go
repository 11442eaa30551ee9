package consensus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A notification is a message between processors (see Pusher): the present pauses, or the receipt
// of a processor that has stopped.
type notification struct {
	// from identifies the process, so that nobody takes its own message.
	from    string
	version Version
	// pauses is nil in a receipt.
	pauses *pauseList
	// id is the processor whose receipt it is.
	id string
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

// encode returns the notification in its pushed form.
func (n *notification) encode() ([]byte, error) {
	j := notificationJSON{Form: notificationForm, From: n.from, Version: uint64(n.version), Receipt: []byte(n.id)}
	if n.pauses != nil {
		body, err := n.pauses.body()
		if err != nil {
			return nil, err
		}
		j.Pause = body
	}
	return json.Marshal(j)
}

// parseNotification reads what encode returns. Anything else is of another release.
func parseNotification(news []byte) (n notification, err error) {
	if len(news) > driver.MaxNewsBytes {
		return n, fmt.Errorf("the size of news is %d, allowed: at most %d", len(news), driver.MaxNewsBytes)
	}
	var j notificationJSON
	if err := decodeStrictly(news, &j); err != nil {
		return n, fmt.Errorf("consensus: not news of this release: %.200s", err.Error())
	}
	n = notification{from: j.From, version: Version(j.Version), id: string(j.Receipt)}
	switch {
	case j.Form != notificationForm || n.version == 0 || n.version > driver.MaxVersion || !driver.IsName(j.From):
		return n, errors.New("consensus: not news of this release")
	case len(j.Pause) > 0 && n.id == "":
		body, err := parsePauseList(j.Pause)
		n.pauses = &body
		return n, err
	case len(j.Pause) == 0 && driver.IsName(n.id):
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
