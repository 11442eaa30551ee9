package consensus

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A forgiveness is the document "debt": that somebody has forgiven what the processors owe. Each of them does so once, when it
// first sees an ID that it has not seen before. What was on record when it came is of a time before its own debt.
type forgiveness struct {
	id, reason, by string
	at             time.Time // by the wall clock of whoever forgave, for people only
}

type forgivenessJSON struct {
	ID     string `json:"id"`
	At     string `json:"at,omitempty"`
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}

func (f forgiveness) body() ([]byte, error) {
	return json.Marshal(forgivenessJSON{f.id, f.at.UTC().Format(time.RFC3339), f.reason, f.by})
}

// maxForgivenessID bounds the ID in a document.
const maxForgivenessID = 64

func parseForgiveness(body []byte) (f forgiveness, err error) {
	var j forgivenessJSON
	if err := decodeStrictly(body, &j); err != nil {
		return f, fmt.Errorf("consensus: the document %q says of no debt: %.200s", debtDocument, err.Error())
	}
	if j.ID == "" || len(j.ID) > maxForgivenessID {
		return f, fmt.Errorf("consensus: the document %q has an id of %d bytes, allowed: 1 to %d", debtDocument, len(j.ID), maxForgivenessID)
	}
	f = forgiveness{id: j.ID, reason: j.Reason, by: j.By}
	if j.At != "" {
		if f.at, err = time.Parse(time.RFC3339, j.At); err != nil {
			return forgiveness{}, fmt.Errorf("consensus: the document %q: at is %.40q, allowed: a time as of RFC 3339", debtDocument, j.At)
		}
	}
	return f, (&limit.Paused{Reason: f.reason, By: f.by}).Check(time.Time{})
}

// ForgiveDebt ends what the processors of a pool owe because calls have used more than they drew (throttle.Throttle.ForgiveDebt): each of
// them forgets it with its next sync. Debt that comes later counts. What tags owe to the quotas of the pool stays. reason says
// why, in up to 128 bytes of text, and by who, in up to 64. The pool must have a record. ForgiveDebt blocks until the store has
// answered; ctx bounds it.
//
// Errors: *RequestError for a reason or a name that is invalid; one that wraps ErrNoPool; *ConflictError when others keep changing it at the
// same time; those of the store.
func ForgiveDebt(ctx context.Context, s Store, pool, reason, by string) error {
	f := forgiveness{id: rand.Text(), reason: reason, by: by, at: time.Now()}
	if err := (&limit.Paused{Reason: reason, By: by}).Check(time.Time{}); err != nil {
		return badWords("of the debt that is forgiven", err)
	}
	_, err := debtDoc.Change(ctx, s, pool, func(pooldoc.Recorded[forgiveness]) (forgiveness, bool, error) { return f, true, nil })
	return saving(err, "consensus: forgiving the debt of pool %q: %w", pool)
}

// A forgiving is what a processor knows of it.
type forgiving struct {
	known bool   // there was an answer
	id    string // the newest
	times int    // how often debt was forgiven since
}

// take takes what an answer shows of the document.
func (f *forgiving) take(held driver.Document) {
	doc, err := debtDoc.Read(held)
	if err != nil {
		return // of another release
	}
	if f.known && doc.id != "" && doc.id != f.id {
		f.times++
	}
	f.known, f.id = true, doc.id
}

// forgive tells the holder when debt was forgiven since the last call. m.mu is held.
func (m *Member) forgive() {
	times := m.p.ceiling.forgiving.times
	if times == m.forgiven {
		return
	}
	m.forgiven = times
	if h, ok := m.holder.(sharing.Debtor); ok {
		h.ForgiveDebt()
	}
}
