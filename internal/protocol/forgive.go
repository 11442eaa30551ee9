package protocol

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A forgiveness is the document "debt": somebody has forgiven what the processors owe. Each processor forgets its debt once for each
// new ID. A document that it finds on joining is older than its debt, and does not count.
type forgiveness struct {
	ID     string    `json:"id"`
	At     time.Time `json:"at,omitzero"` // by the wall clock of the forgiving process, for people only
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
}

func (f forgiveness) body() ([]byte, error) { return json.Marshal(f) }

// maxForgivenessID bounds the ID in a document.
const maxForgivenessID = 64

func parseForgiveness(body []byte) (f forgiveness, err error) {
	if err := decodeStrictly(body, &f); err != nil {
		return forgiveness{}, fmt.Errorf("consensus: the document %q says of no debt: %.200s", debtDocument, err.Error())
	}
	if f.ID == "" || len(f.ID) > maxForgivenessID {
		return forgiveness{}, fmt.Errorf("consensus: the document %q has an id of %d bytes, allowed: 1 to %d", debtDocument, len(f.ID), maxForgivenessID)
	}
	return f, (&limit.Paused{Reason: f.Reason, By: f.By}).Check(time.Time{})
}

// ForgiveDebt is operate.Pool.ForgiveDebt, for a pool with or without processors. Each
// processor forgets it with its next sync. Later debt counts. What tags owe to the quotas of the pool stays. reason says why, in
// up to 128 bytes of text, and by says who, in up to 64. The pool must have a record. ForgiveDebt blocks until the store has answered;
// ctx bounds it.
//
// Errors: *RequestError for an invalid reason or name; one that wraps ErrNoPool; *ConflictError when others keep changing the document
// at the same time; those of the store.
func ForgiveDebt(ctx context.Context, s driver.Store, pool, reason, by string) error {
	f := forgiveness{rand.Text(), time.Now().UTC().Truncate(time.Second), reason, by}
	if err := (&limit.Paused{Reason: reason, By: by}).Check(time.Time{}); err != nil {
		return badWords("of the debt that is forgiven", err)
	}
	_, err := debtDoc.Change(ctx, s, pool, func(pooldoc.Recorded[forgiveness]) (forgiveness, bool, error) { return f, true, nil })
	return saving(err, "consensus: forgiving the debt of pool %q: %w", pool)
}

// A forgiving is what a processor knows of the document "debt".
type forgiving struct {
	known bool   // there was an answer
	id    string // of the newest forgiveness
	times int    // how often debt was forgiven since
}

// take applies the document of an answer.
func (f *forgiving) take(held driver.Document) {
	doc, err := debtDoc.Read(held)
	if err != nil {
		return // of another release
	}
	if f.known && doc.ID != "" && doc.ID != f.id {
		f.times++
	}
	f.known, f.id = true, doc.ID
}
