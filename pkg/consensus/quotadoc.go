package consensus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/quota"
)

// maxChangedTags is how many tags the document can change.
const maxChangedTags = 100

// A quotaChanges is the document "quota": what is changed of the quotas that processors are configured with. Of what it does not
// name nothing changes. It cannot change patterns.
type quotaChanges struct {
	version Version // of the document; 0: there is none
	tags    map[string]quota.Quota
	other   *quota.Quota
}

// over returns quotas with the changes. per is the period of the limit.
func (c quotaChanges) over(q quota.Quotas, per time.Duration) quota.Quotas {
	return (&QuotaChanges{Tags: c.tags, Other: c.other}).Over(q).WithDefaults(per)
}

// leaves returns those of the quotas by name, and that of all other tags, that nothing changes.
func (c quotaChanges) leaves(q quota.Quotas) quota.Quotas {
	q.Tags = maps.Clone(q.Tags)
	for name := range c.tags {
		delete(q.Tags, name)
	}
	if c.other != nil {
		q.Other = quota.Quota{}
	}
	return q
}

// with returns the changes with another one; q nil: as configured. The tag "" is all other tags.
func (c quotaChanges) with(tag string, q *quota.Quota) quotaChanges {
	next := quotaChanges{tags: maps.Clone(c.tags), other: c.other}
	switch {
	case tag == "":
		next.other = q
	case q == nil:
		delete(next.tags, tag)
	default:
		if next.tags == nil {
			next.tags = map[string]quota.Quota{}
		}
		next.tags[tag] = *q
	}
	return next
}

// The form of the document: {"tags":{"acme":{"reserved":200}},"other":{"total":50}}. null is as if it were not there.
type quotaChangesJSON struct {
	Tags  map[string]*quota.Quota `json:"tags,omitempty"`
	Other *quota.Quota            `json:"other,omitempty"`
}

// body returns the document's body. The error is a *RequestError if it is too large.
func (c quotaChanges) body() ([]byte, error) {
	j := quotaChangesJSON{Other: c.other, Tags: map[string]*quota.Quota{}}
	for name, q := range c.tags {
		j.Tags[name] = &q
	}
	if len(c.tags) > maxChangedTags {
		return nil, &RequestError{
			Field: "Tag", Value: fmt.Sprint(len(c.tags), " changed tags"),
			Allowed: fmt.Sprint("at most ", maxChangedTags, "; put the others into the configuration"),
		}
	}
	body, err := json.Marshal(j)
	if err == nil && len(body) > maxDocumentBytes {
		err = &RequestError{
			Field: "Tag", Value: fmt.Sprint(len(body), " bytes of changes"),
			Allowed: fmt.Sprint("at most ", maxDocumentBytes, " bytes; put some into the configuration"),
		}
	}
	return body, err
}

// parseQuotaChanges reads a document's body. An unknown field is an error: a later release may count by it.
func parseQuotaChanges(body []byte) (quotaChanges, error) {
	var j quotaChangesJSON
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil {
		// As text: it may quote a name of any length.
		return quotaChanges{}, fmt.Errorf("consensus: the document %q has no changes of quotas: %.200s", quotaDocument, err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) || len(j.Tags) > maxChangedTags {
		const allowed = `{"tags":{"acme":{"total":400}}}`
		return quotaChanges{}, fmt.Errorf(
			"consensus: the document %q has no changes of quotas, allowed: %s with at most %d tags", quotaDocument, allowed, maxChangedTags)
	}
	c := quotaChanges{other: j.Other, tags: map[string]quota.Quota{}}
	for name, q := range j.Tags {
		if q != nil {
			c.tags[name] = *q
		}
	}
	return c, c.validate(quota.Quotas{}, 0, 0)
}

// validate checks the changes alone, or over what is configured for a limit of most per per, if most is above 0. An error says
// which field of which tag is out of bounds; it is a *quota.ReservedError if nothing is wrong but the sum of what is reserved.
func (c quotaChanges) validate(configured quota.Quotas, most int, per time.Duration) error {
	if most > 0 {
		return c.over(configured, per).Validate(most, per)
	}
	// Alone: no sum of rates is too large for the largest limit in the shortest time.
	var q quota.Quotas
	q.Tags = c.tags
	if c.other != nil {
		q.Other = *c.other
	}
	err := q.Validate(maxNoteTokens, time.Second)
	if over := (*quota.ReservedError)(nil); errors.As(err, &over) {
		return nil
	}
	return err
}
