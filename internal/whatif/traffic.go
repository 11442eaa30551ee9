package whatif

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/tagname"
)

// The bounds of a recording.
const (
	MaxBytes   = 256 << 20 // of a file
	MaxMinutes = 31 * 24 * 60
	MaxTags    = 1000
	maxRate    = 1e9 // calls per second
	maxCost    = 1e9 // tokens per call
)

// Traffic is a recording: calls per second in each minute, by tag.
type Traffic struct {
	// Start is the first minute. Minutes counts those from then to the last one in which a tag has a line.
	Start   time.Time
	Minutes int
	// Tags are sorted by name; "" is for calls without a tag.
	Tags []TagTraffic
}

// TagTraffic is the recording of one tag.
type TagTraffic struct {
	Name string
	// Minutes has an entry for each minute with calls, in order.
	Minutes []Minute
}

// A Minute is one minute of a tag.
type Minute struct {
	Index int     // since Traffic.Start
	Rate  float64 // calls per second, above 0
	Cost  float64 // tokens per call, above 0
}

// A LineError is a fault of a recording.
type LineError struct {
	// Line counts from 1. Column is empty for a fault of the whole line.
	Line             int
	Column, Value    string
	Problem, Allowed string
}

// Error names the line, the column and the value, and says what is allowed.
func (e *LineError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "traffic: line %d", e.Line)
	if e.Column != "" {
		fmt.Fprintf(&b, ", %s is %.60q", e.Column, e.Value)
	}
	if e.Problem != "" {
		b.WriteString(", " + e.Problem)
	}
	return b.String() + ", allowed: " + e.Allowed
}

const columnsAllowed = "the columns time, tag, rate, cost, in any order; tag and cost may be missing"

// ReadTraffic reads a recording in CSV: a line with the names of the columns, then one for each minute and tag. The columns are time (RFC
// 3339), rate (calls per second in the minute from then), and, if they are there, tag and cost (tokens per call, 1 without it). Minutes come
// in order; those without a line had no calls. Errors: *LineError, that of r, and one for an empty or a too large recording.
func ReadTraffic(r io.Reader) (*Traffic, error) {
	bounded := &io.LimitedReader{R: r, N: MaxBytes + 1}
	rd := csv.NewReader(bounded)
	rd.ReuseRecord, rd.FieldsPerRecord = true, -1
	p := &parser{tags: map[string]*TagTraffic{}, rd: rd}
	err := p.all()
	if bounded.N <= 0 {
		return nil, fmt.Errorf("traffic: larger than %d MB, allowed: less, such as fewer days or tags", MaxBytes>>20)
	}
	if err != nil {
		return nil, err
	}
	return p.traffic()
}

// A parser reads a recording.
type parser struct {
	rd     *csv.Reader
	at     map[string]int // the columns
	line   int
	start  time.Time
	minute int // of the last line
	tags   map[string]*TagTraffic
	seen   map[string]bool // the tags that have a line in this minute
}

func (p *parser) all() error {
	if err := p.header(); err != nil {
		return err
	}
	for {
		row, err := p.rd.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return p.syntax(err)
		}
		p.line, _ = p.rd.FieldPos(0)
		if err := p.row(row); err != nil {
			return err
		}
	}
}

// syntax returns the error for text that is no CSV.
func (p *parser) syntax(err error) error {
	if fault, ok := errors.AsType[*csv.ParseError](err); ok {
		return &LineError{Line: fault.Line, Problem: fault.Err.Error(), Allowed: "CSV (RFC 4180)"}
	}
	return fmt.Errorf("traffic: %w", err)
}

// header reads the names of the columns.
func (p *parser) header() error {
	row, err := p.rd.Read()
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("traffic: the recording is empty, allowed: a line with the names of the columns, then a line for each minute and tag")
	case err != nil:
		return p.syntax(err)
	}
	p.at = map[string]int{}
	for i, name := range row {
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
		_, twice := p.at[name]
		switch {
		case !slices.Contains([]string{"time", "tag", "rate", "cost"}, name):
			return &LineError{Line: 1, Column: fmt.Sprintf("column %d", i+1), Value: name, Allowed: columnsAllowed}
		case twice:
			return &LineError{Line: 1, Column: fmt.Sprintf("column %d", i+1), Value: name, Problem: "as another one is", Allowed: columnsAllowed}
		}
		p.at[name] = i
	}
	for _, name := range []string{"time", "rate"} {
		if _, ok := p.at[name]; !ok {
			return &LineError{Line: 1, Problem: "the column " + name + " is missing", Allowed: columnsAllowed}
		}
	}
	return nil
}

// field returns a field of a row; empty without its column.
func (p *parser) field(row []string, name string) string {
	if i, ok := p.at[name]; ok {
		return strings.TrimSpace(row[i])
	}
	return ""
}

func (p *parser) fault(column, value, problem, allowed string) error {
	return &LineError{Line: p.line, Column: column, Value: value, Problem: problem, Allowed: allowed}
}

// row takes one line.
func (p *parser) row(row []string) error {
	if len(row) != len(p.at) {
		return &LineError{
			Line: p.line, Problem: fmt.Sprintf("it has %d fields", len(row)), Allowed: fmt.Sprintf("%d fields, as in line 1", len(p.at)),
		}
	}
	minute, err := p.time(p.field(row, "time"))
	if err != nil {
		return err
	}
	tag := p.field(row, "tag")
	if tag != "" && !tagname.Valid(tag) {
		return p.fault("tag", tag, "", "1 to 64 bytes of UTF-8 without control characters, or nothing")
	}
	rate, err := p.number("rate", p.field(row, "rate"), maxRate)
	if err != nil {
		return err
	}
	cost := 1.0
	if text := p.field(row, "cost"); text != "" {
		if cost, err = p.number("cost", text, maxCost); err != nil {
			return err
		}
		if cost == 0 && rate > 0 {
			return p.fault("cost", text, "", "a number above 0, to 1e9, or nothing for 1")
		}
	}
	return p.add(minute, tag, rate, cost)
}

// time returns the minute of a line.
func (p *parser) time(text string) (minute int, err error) {
	const allowed = "a time as in RFC 3339, such as 2026-11-29T08:00:00Z"
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Year() < 1971 || at.Year() > 9998 {
		return 0, p.fault("time", text, "", allowed)
	}
	if p.start.IsZero() {
		p.start, p.seen = at, map[string]bool{}
		return 0, nil
	}
	since := at.Sub(p.start)
	switch last := p.start.Add(time.Duration(p.minute) * time.Minute); {
	case at.Before(last):
		return 0, p.fault("time", text, "before the line above", "lines in the order of their minutes, "+last.Format(time.RFC3339)+" or later")
	case since%time.Minute != 0:
		return 0, p.fault("time", text, "", "whole minutes after the first line, "+p.start.Format(time.RFC3339))
	case since >= MaxMinutes*time.Minute:
		return 0, p.fault("time", text, "", fmt.Sprintf("at most %d days after the first line, %s", MaxMinutes/24/60, p.start.Format(time.RFC3339)))
	}
	if minute = int(since / time.Minute); minute > p.minute {
		clear(p.seen)
	}
	return minute, nil
}

// number returns a number from 0.
func (p *parser) number(column, text string, most float64) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || x < 0 || x > most {
		return 0, p.fault(column, text, "", fmt.Sprintf("a number from 0 to %g", most))
	}
	return x, nil
}

// add adds a minute of a tag.
func (p *parser) add(minute int, tag string, rate, cost float64) error {
	if p.seen[tag] {
		return p.fault("tag", tag, "for the second time in this minute", "one line for each minute and tag")
	}
	p.minute, p.seen[tag] = minute, true
	t := p.tags[tag]
	if t == nil {
		if len(p.tags) == MaxTags {
			return p.fault("tag", tag, "", fmt.Sprintf("at most %d different tags", MaxTags))
		}
		t = &TagTraffic{Name: tag}
		p.tags[strings.Clone(tag)] = t
		t.Name = strings.Clone(tag)
	}
	if rate > 0 {
		t.Minutes = append(t.Minutes, Minute{Index: minute, Rate: rate, Cost: cost})
	}
	return nil
}

// traffic returns the recording.
func (p *parser) traffic() (*Traffic, error) {
	t := &Traffic{Start: p.start, Minutes: p.minute + 1}
	for _, tag := range p.tags {
		t.Tags = append(t.Tags, *tag)
	}
	slices.SortFunc(t.Tags, func(a, b TagTraffic) int { return strings.Compare(a.Name, b.Name) })
	if t.calls() == 0 {
		return nil, errors.New("traffic: no line has a call, allowed: at least one line with a rate above 0")
	}
	return t, nil
}

// Length returns how long the recording is.
func (t *Traffic) Length() time.Duration { return time.Duration(t.Minutes) * time.Minute }

// calls returns how many calls there are.
func (t *Traffic) calls() (sum float64) {
	for i := range t.Tags {
		for _, m := range t.Tags[i].Minutes {
			sum += m.Rate * 60
		}
	}
	return sum
}
