package limit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// The JSON form uses the names of the configuration, in one line: {"tags":{"acme":{"reserved":200,"per":"1m0s"}}}. Zero fields are omitted,
// except the total of a Blocked quota. Reading is strict: an unknown name may be a bound of a later release.

// quotaJSON is a Quota or, with a tag, a QuotaPattern.
type quotaJSON struct {
	Tag      string       `json:"tag,omitempty"`
	Reserved int          `json:"reserved,omitempty"`
	Total    *int         `json:"total,omitempty"` // 0: Blocked
	Burst    int          `json:"burst,omitempty"`
	Per      string       `json:"per,omitempty"`
	Weight   int          `json:"weight,omitempty"`
	Class    Class        `json:"class,omitempty"`
	Budgets  []budgetJSON `json:"budgets,omitempty"`
	Hard     bool         `json:"hard,omitempty"`
	Shadow   bool         `json:"shadow,omitempty"`
}

type budgetJSON struct {
	Amount int64  `json:"amount"`
	Per    Period `json:"per"`
	Zone   string `json:"zone,omitempty"`
	Then   Then   `json:"then,omitempty"`
}

type quotasJSON struct {
	Tags  map[string]Quota `json:"tags,omitempty"`
	Match []QuotaPattern   `json:"match,omitempty"`
	Other *Quota           `json:"other,omitempty"`
}

func (q Quota) json() quotaJSON {
	j := quotaJSON{
		Reserved: q.Reserved, Burst: q.Burst, Weight: q.Weight, Class: q.Class, Hard: q.Hard, Shadow: q.Shadow,
	}
	if q.Total != 0 || q.Blocked {
		j.Total = &q.Total
	}
	if q.Per != 0 {
		j.Per = q.Per.String()
	}
	for _, b := range q.Budgets {
		j.Budgets = append(j.Budgets, budgetJSON(b))
	}
	return j
}

func (j *quotaJSON) quota() (Quota, error) {
	q := Quota{
		Reserved: j.Reserved, Burst: j.Burst, Weight: j.Weight, Class: j.Class, Hard: j.Hard, Shadow: j.Shadow,
	}
	if j.Total != nil {
		q.Total, q.Blocked = *j.Total, *j.Total == 0
	}
	if j.Per != "" {
		per, err := time.ParseDuration(j.Per)
		if err != nil {
			return Quota{}, fmt.Errorf("per is %s, allowed: a duration such as 1m", shortQuote(j.Per))
		}
		q.Per = per
	}
	for _, b := range j.Budgets {
		q.Budgets = append(q.Budgets, Budget(b))
	}
	return q, nil
}

// MarshalJSON writes the fields that are not zero, with durations such as 1m0s.
func (q Quota) MarshalJSON() ([]byte, error) { return json.Marshal(q.json()) }

// UnmarshalJSON reads the output of MarshalJSON, and nothing else.
func (q *Quota) UnmarshalJSON(text []byte) error {
	var j quotaJSON
	err := strict(text, &j)
	if err == nil && j.Tag != "" {
		err = errors.New(`unknown field "tag"`)
	}
	if err != nil {
		return err
	}
	*q, err = j.quota()
	return err
}

// MarshalJSON writes the pattern's tag beside the fields of its quota.
func (p QuotaPattern) MarshalJSON() ([]byte, error) {
	j := p.json()
	j.Tag = p.Tag
	return json.Marshal(j)
}

// UnmarshalJSON reads the output of MarshalJSON, and nothing else.
func (p *QuotaPattern) UnmarshalJSON(text []byte) error {
	var j quotaJSON
	if err := strict(text, &j); err != nil {
		return err
	}
	q, err := j.quota()
	if err != nil {
		return err
	}
	*p = QuotaPattern{Tag: j.Tag, Quota: q}
	return nil
}

// MarshalJSON writes the fields that are set.
func (q Quotas) MarshalJSON() ([]byte, error) {
	j := quotasJSON{Tags: q.Tags, Match: q.Match}
	if !q.Other.isZero() {
		j.Other = &q.Other
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads the output of MarshalJSON, and nothing else.
func (q *Quotas) UnmarshalJSON(text []byte) error {
	var j quotasJSON
	if err := strict(text, &j); err != nil {
		return err
	}
	*q = Quotas{Tags: j.Tags, Match: j.Match}
	if j.Other != nil {
		q.Other = *j.Other
	}
	return nil
}

// strict reads one JSON value into into, and rejects unknown names.
func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the value")
	}
	return nil
}
