package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// maxChangedTags is how many tags the document can change.
const maxChangedTags = 100

// QuotaChanges is the document "quota": changes of the quotas that the processors of a pool are configured with. Quotas not named in it
// stay as configured. It cannot change patterns.
type QuotaChanges struct {
	// Tags are the changed quotas by name, and Other that of all other tags; nil: as configured.
	Tags  map[string]limit.Quota `json:"tags,omitempty"`
	Other *limit.Quota           `json:"other,omitempty"`
	// Orders says of changed quotas by tag, "" for Other, until when they last, who changed them and why.
	Orders map[string]QuotaOrder `json:"-"`
	// Version counts the changes; 0: there were none.
	Version driver.Version `json:"-"`
}

// Of returns the changed quota of one tag, or of all other tags for the tag ""; nil: as configured.
func (c QuotaChanges) Of(tag string) *limit.Quota {
	if tag == "" {
		return c.Other
	}
	if q, ok := c.Tags[tag]; ok {
		return &q
	}
	return nil
}

// Len is how many quotas are changed.
func (c QuotaChanges) Len() int {
	if c.Other != nil {
		return len(c.Tags) + 1
	}
	return len(c.Tags)
}

// Over returns configured quotas with the changes: those that processors with these quotas use. q stays as it is.
func (c QuotaChanges) Over(q limit.Quotas) limit.Quotas {
	if len(c.Tags) != 0 {
		if q.Tags = maps.Clone(q.Tags); q.Tags == nil {
			q.Tags = map[string]limit.Quota{}
		}
		maps.Copy(q.Tags, c.Tags)
	}
	if c.Other != nil {
		q.Other = *c.Other
	}
	return q
}

// over returns quotas with the changes. per is the period of the limit.
func (c QuotaChanges) over(q limit.Quotas, per time.Duration) limit.Quotas {
	return c.Over(q).WithDefaults(per)
}

// leaves returns the quotas by name, and that of all other tags, that the changes leave alone.
func (c QuotaChanges) leaves(q limit.Quotas) limit.Quotas {
	q.Tags = maps.Clone(q.Tags)
	for name := range c.Tags {
		delete(q.Tags, name)
	}
	if c.Other != nil {
		q.Other = limit.Quota{}
	}
	return q
}

// with returns the changes with another one, and its order; q nil: as configured. The tag "" is all other tags.
func (c QuotaChanges) with(tag string, q *limit.Quota, o QuotaOrder) QuotaChanges {
	next := QuotaChanges{Tags: maps.Clone(c.Tags), Other: c.Other, Orders: maps.Clone(c.Orders)}
	delete(next.Orders, tag)
	if q != nil && o != (QuotaOrder{}) {
		if next.Orders == nil {
			next.Orders = map[string]QuotaOrder{}
		}
		next.Orders[tag] = o
	}
	switch {
	case tag == "":
		next.Other = q
	case q == nil:
		delete(next.Tags, tag)
	default:
		if next.Tags == nil {
			next.Tags = map[string]limit.Quota{}
		}
		next.Tags[tag] = *q
	}
	return next
}

// body returns the document's body: {"tags":{"acme":{"reserved":200}},"other":{"total":50}}. The error is a *RequestError if it is larger
// than parseQuotaChanges reads.
func (c QuotaChanges) body() ([]byte, error) {
	body, entries, err := c.text(true)
	fits := func() bool { return len(body) <= wire.MaxDocumentBytes && entries <= maxChangedTags }
	if err == nil && !fits() {
		body, entries, err = c.text(false)
	}
	switch {
	case err != nil || fits():
		return body, err
	case entries > maxChangedTags:
		value := fmt.Sprint(len(c.Tags), " changed tags")
		if ends := entries - len(c.Tags); ends > 0 {
			value += fmt.Sprint(", and ends of ", ends)
		}
		return nil, &driver.RequestError{
			Field: "Tag", Value: value, Allowed: fmt.Sprint("at most ", maxChangedTags, " together; put the others into the configuration"),
		}
	}
	return nil, &driver.RequestError{
		Field: "Tag", Value: fmt.Sprint(len(body), " bytes of changes"),
		Allowed: fmt.Sprint("at most ", wire.MaxDocumentBytes, " bytes; put some into the configuration"),
	}
}

// text returns the document's body, of any size, and how many entries it has. Without all, authors and reasons of changes without an end
// give way.
func (c QuotaChanges) text(all bool) (body []byte, entries int, err error) {
	j := quotaChangesJSON{map[string]*limit.Quota{}, c.Other}
	for name, q := range c.Tags {
		j.Tags[name] = &q
	}
	for tag, o := range c.Orders {
		if !all && o.ending.left == 0 {
			continue
		}
		name, err := o.name(tag)
		if err != nil {
			return nil, 0, err
		}
		j.Tags[name] = nil
	}
	body, err = json.Marshal(j)
	return body, len(j.Tags), err
}

// The form of the document.
type quotaChangesJSON struct {
	Tags  map[string]*limit.Quota `json:"tags,omitempty"`
	Other *limit.Quota            `json:"other,omitempty"`
}

// parseQuotaChanges reads a document's body. null is as if it were not there. An unknown field is an error: a later release may count by it.
func parseQuotaChanges(body []byte) (QuotaChanges, error) {
	var j quotaChangesJSON
	if err := decodeStrictly(body, &j); err != nil {
		return QuotaChanges{}, fmt.Errorf("consensus: the document %q has no changes of quotas: %.200s", quotaDocument, err.Error())
	}
	if len(j.Tags) > maxChangedTags {
		const allowed = `{"tags":{"acme":{"total":400}}}`
		return QuotaChanges{}, fmt.Errorf(
			"consensus: the document %q has no changes of quotas, allowed: %s with at most %d tags", quotaDocument, allowed, maxChangedTags)
	}
	c := QuotaChanges{Tags: map[string]limit.Quota{}, Other: j.Other}
	for name, q := range j.Tags {
		if q != nil {
			c.Tags[name] = *q
			continue
		}
		tag, o, ok, err := parseOrder(name)
		if err != nil {
			return QuotaChanges{}, err
		}
		if ok {
			if c.Orders == nil {
				c.Orders = map[string]QuotaOrder{}
			}
			c.Orders[tag] = o
		}
	}
	for tag := range c.Orders {
		if c.Of(tag) == nil {
			delete(c.Orders, tag)
		}
	}
	return c, c.validate(limit.Quotas{}, 0, 0)
}

// validate checks the changes alone, or over the configured quotas for a limit of most per per, if most is above 0. An error names the tag
// and the field out of bounds. It is a *limit.ReservedError if only the sum of the reserved rates is too large.
func (c QuotaChanges) validate(configured limit.Quotas, most int, per time.Duration) error {
	if most > 0 {
		return c.over(configured, per).Validate(most, per)
	}
	// Alone: no sum of rates is too large for the largest limit in the shortest time.
	var q limit.Quotas
	q.Tags = c.Tags
	if c.Other != nil {
		q.Other = *c.Other
	}
	return inBounds(&q)
}

// inBounds checks quotas alone, whatever the limit that they are parts of.
func inBounds(q *limit.Quotas) error {
	err := q.Validate(maxNoteTokens, time.Second)
	if over := (*limit.ReservedError)(nil); errors.As(err, &over) {
		return nil
	}
	return err
}
