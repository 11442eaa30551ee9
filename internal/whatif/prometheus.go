package whatif

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/tagname"
)

// A Query asks a Prometheus server, or one with its HTTP API, for a recording.
type Query struct {
	// Server is its URL, with a path before /api/v1 if it has one, and perhaps a user and a password. Token is a bearer token; empty: none.
	Server *url.URL
	Token  string
	// Text is in PromQL. It gives one series for each tag, of calls per second in the minute that ends at a moment, such as
	// sum by (tag) (rate(calls_total[1m])). Label is the label that holds the tag; a series without it is of calls without a tag.
	Text, Label string
	// The minutes from Start to End are asked for, both rounded down.
	Start, End time.Time
}

// Bounds of a query.
const (
	mostPoints = 10_000 // of a series in one answer: a server gives 11,000
	askWithin  = time.Minute
)

// Traffic asks for the recording. A moment without a value, or with NaN, has no calls. Errors name the server without its password.
func (q *Query) Traffic(ctx context.Context) (*Traffic, error) {
	start, end := q.Start.UTC().Truncate(time.Minute), q.End.UTC().Truncate(time.Minute)
	minutes := int(end.Sub(start) / time.Minute)
	if minutes < 1 || minutes > MaxMinutes {
		return nil, fmt.Errorf("traffic: from %s to %s, allowed: a minute to %d days",
			start.Format(time.RFC3339), end.Format(time.RFC3339), MaxMinutes/24/60)
	}
	rates := map[string]map[int]float64{}
	for from := 1; from <= minutes; from += mostPoints {
		to := min(from+mostPoints-1, minutes)
		list, err := q.ask(ctx, start.Add(time.Duration(from)*time.Minute), start.Add(time.Duration(to)*time.Minute))
		if err == nil {
			err = q.collect(list, start, minutes, rates)
		}
		if err != nil {
			return nil, fmt.Errorf("traffic: %s: %w", q.Server.Redacted(), err)
		}
	}
	t := &Traffic{Start: start, Minutes: minutes}
	for tag, byMinute := range rates {
		of := TagTraffic{Name: tag}
		for minute, rate := range byMinute {
			of.Minutes = append(of.Minutes, Minute{Index: minute, Rate: rate, Cost: 1})
		}
		slices.SortFunc(of.Minutes, func(a, b Minute) int { return cmp.Compare(a.Index, b.Index) })
		t.Tags = append(t.Tags, of)
	}
	slices.SortFunc(t.Tags, func(a, b TagTraffic) int { return strings.Compare(a.Name, b.Name) })
	if len(t.Tags) == 0 {
		return nil, fmt.Errorf("traffic: %s: the query has no call from %s to %s, allowed: a query with a value above 0",
			q.Server.Redacted(), start.Format(time.RFC3339), end.Format(time.RFC3339))
	}
	return t, nil
}

// A promSeries is a series of an answer: a matrix of Prometheus.
type promSeries struct {
	Metric map[string]string    `json:"metric"`
	Values [][2]json.RawMessage `json:"values"` // seconds, and a number in quotes
}

// ask sends one query.
func (q *Query) ask(ctx context.Context, from, to time.Time) ([]promSeries, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	form := url.Values{
		"query": {q.Text}, "start": {strconv.FormatInt(from.Unix(), 10)}, "end": {strconv.FormatInt(to.Unix(), 10)}, "step": {"60"},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, q.Server.JoinPath("api/v1/query_range").String(), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, bare(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if q.Token != "" {
		req.Header.Set("Authorization", "Bearer "+q.Token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, bare(err)
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBytes+1))
	switch {
	case err != nil:
		return nil, bare(err)
	case len(body) > MaxBytes:
		return nil, fmt.Errorf("the answer has more than %d MB, allowed: less, such as fewer days or tags", MaxBytes>>20)
	}
	var answer struct {
		Error string `json:"error"`
		Data  struct {
			ResultType string       `json:"resultType"`
			Result     []promSeries `json:"result"`
		} `json:"data"`
	}
	switch err := json.Unmarshal(body, &answer); {
	case answer.Error != "":
		return nil, fmt.Errorf("status %d: %.300s", resp.StatusCode, answer.Error)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("status %d, allowed: 200", resp.StatusCode)
	case err != nil || answer.Data.ResultType != "matrix":
		return nil, errors.New("the answer is no matrix, allowed: that of a Prometheus server to a range query")
	}
	return answer.Data.Result, nil
}

// bare is an error of the client without the URL, which may hold a password.
func bare(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// collect adds the values of an answer to rates.
func (q *Query) collect(list []promSeries, start time.Time, minutes int, rates map[string]map[int]float64) error {
	seen := map[string]bool{}
	for _, s := range list {
		tag := s.Metric[q.Label]
		switch {
		case tag != "" && !tagname.Valid(tag):
			return fmt.Errorf("%s is %.80q, allowed: 1 to 64 bytes of UTF-8 without control characters", q.Label, tag)
		case seen[tag]:
			return fmt.Errorf("the query gives several series with %s %q, allowed: one, as of sum by (%s) (...)", q.Label, tag, q.Label)
		}
		seen[tag] = true
		for _, v := range s.Values {
			minute, rate, err := pointOf(v, start, minutes)
			if err != nil {
				return err
			}
			if rate <= 0 {
				continue
			}
			if rates[tag] == nil {
				if len(rates) == MaxTags {
					return fmt.Errorf("the query gives more than %d values of %s, allowed: fewer, as of topk", MaxTags, q.Label)
				}
				rates[tag] = map[int]float64{}
			}
			rates[tag][minute] = rate
		}
	}
	return nil
}

// pointOf reads a value: that of the minute that ends at its moment.
func pointOf(v [2]json.RawMessage, start time.Time, minutes int) (minute int, rate float64, err error) {
	var seconds float64
	var text string
	if errors.Join(json.Unmarshal(v[0], &seconds), json.Unmarshal(v[1], &text)) != nil {
		return 0, 0, fmt.Errorf("the value %.40s %.40s is no point, allowed: seconds, and a number in quotes", v[0], v[1])
	}
	rate, err = strconv.ParseFloat(text, 64)
	minute = int(math.Round((seconds-float64(start.Unix()))/60)) - 1
	switch {
	case math.IsNaN(rate):
		return 0, 0, nil
	case err != nil || rate < 0 || rate > maxRate:
		return 0, 0, fmt.Errorf("the value %.40q is no rate, allowed: a number from 0 to %g", text, float64(maxRate))
	case minute < 0 || minute >= minutes:
		return 0, 0, fmt.Errorf("the value at %.0f s is of no minute that was asked for", seconds)
	}
	return minute, rate, nil
}
