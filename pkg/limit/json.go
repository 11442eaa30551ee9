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
	Tag      string   `json:"tag,omitempty"`
	Reserved int      `json:"reserved,omitempty"`
	Total    *int     `json:"total,omitempty"` // 0: Blocked
	Burst    int      `json:"burst,omitempty"`
	Per      string   `json:"per,omitempty"`
	Weight   int      `json:"weight,omitempty"`
	Class    Class    `json:"class,omitempty"`
	Budgets  []Budget `json:"budgets,omitempty"`
	Hard     bool     `json:"hard,omitempty"`
	Shadow   bool     `json:"shadow,omitempty"`
}

func (q Quota) json(tag string) quotaJSON {
	j := quotaJSON{
		Tag: tag, Reserved: q.Reserved, Burst: q.Burst, Weight: q.Weight, Class: q.Class, Budgets: q.Budgets, Hard: q.Hard, Shadow: q.Shadow,
	}
	if q.Total != 0 || q.Blocked {
		j.Total = &q.Total
	}
	if q.Per != 0 {
		j.Per = q.Per.String()
	}
	return j
}

func (j *quotaJSON) quota() (q Quota, err error) {
	q = Quota{Reserved: j.Reserved, Burst: j.Burst, Weight: j.Weight, Class: j.Class, Budgets: j.Budgets, Hard: j.Hard, Shadow: j.Shadow}
	if j.Total != nil {
		q.Total, q.Blocked = *j.Total, *j.Total == 0
	}
	if j.Per != "" {
		if q.Per, err = time.ParseDuration(j.Per); err != nil {
			return Quota{}, fmt.Errorf("per is %s, allowed: a duration such as 1m", shortQuote(j.Per))
		}
	}
	return q, nil
}

// MarshalJSON writes the fields that are not zero, with durations such as 1m0s.
func (q Quota) MarshalJSON() ([]byte, error) { return json.Marshal(q.json("")) }

// UnmarshalJSON reads the output of MarshalJSON, and nothing else.
func (q *Quota) UnmarshalJSON(text []byte) error {
	p := QuotaPattern{}
	err := p.UnmarshalJSON(text)
	if err == nil && p.Tag != "" {
		err = errors.New(`unknown field "tag"`)
	}
	if err == nil {
		*q = p.Quota
	}
	return err
}

// MarshalJSON writes the pattern's tag beside the fields of its quota.
func (p QuotaPattern) MarshalJSON() ([]byte, error) { return json.Marshal(p.json(p.Tag)) }

// UnmarshalJSON reads the output of MarshalJSON, and nothing else.
func (p *QuotaPattern) UnmarshalJSON(text []byte) error {
	var j quotaJSON
	if err := strict(text, &j); err != nil {
		return err
	}
	q, err := j.quota()
	if err == nil {
		*p = QuotaPattern{Tag: j.Tag, Quota: q}
	}
	return err
}

// UnmarshalJSON reads the JSON form, and nothing else.
func (q *Quotas) UnmarshalJSON(text []byte) error {
	type plain Quotas
	var p plain
	err := strict(text, &p)
	if err == nil {
		*q = Quotas(p)
	}
	return err
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
