package httpthrottle

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// A problem is what the bodies of refusals have in common: an object "error", in an array
// of its own where the service streams. What has another form reads as empty.
type problem struct {
	// Code is a word (OpenAI) or repeats the status (Google).
	Code json.RawMessage `json:"code"`
	// Type is OpenAI's and Anthropic's kind of error.
	Type string `json:"type"`
	// Message is for people.
	Message string `json:"message"`
	// Details is an array of typed objects (Google) or one object (Anthropic).
	Details json.RawMessage `json:"details"`
}

// A detail is one of Google's details: google.rpc.RetryInfo or google.rpc.QuotaFailure.
type detail struct {
	Type       string `json:"@type"`
	RetryDelay string `json:"retryDelay"`
	Violations []struct {
		QuotaID string `json:"quotaId"`
	} `json:"violations"`
}

func readProblem(body []byte) problem {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' {
		var all []json.RawMessage
		if json.Unmarshal(body, &all) != nil || len(all) == 0 {
			return problem{}
		}
		body = all[0]
	}
	var envelope struct {
		Error json.RawMessage `json:"error"`
	}
	var p problem
	if json.Unmarshal(body, &envelope) != nil || json.Unmarshal(envelope.Error, &p) != nil {
		return problem{}
	}
	return p
}

// code returns the service's word for what is wrong; empty when it has none.
func (p problem) code() string {
	var word string
	if json.Unmarshal(p.Code, &word) == nil && word != "" {
		return clean(word)
	}
	return clean(p.Type)
}

// details returns Google's details.
func (p problem) details() []detail {
	var all []json.RawMessage
	if json.Unmarshal(p.Details, &all) != nil {
		return nil
	}
	var details []detail
	for _, raw := range all {
		var d detail
		if json.Unmarshal(raw, &d) == nil {
			details = append(details, d)
		}
	}
	return details
}

// retryInfo returns the delay of google.rpc.RetryInfo: seconds with an s behind, as in
// every duration of ProtoJSON.
func (p problem) retryInfo() (time.Duration, bool) {
	for _, d := range p.details() {
		if !strings.HasSuffix(d.Type, "google.rpc.RetryInfo") {
			continue
		}
		if number, ok := strings.CutSuffix(d.RetryDelay, "s"); ok {
			if delay, ok := parseNumber(number, time.Second); ok {
				return delay, true
			}
		}
	}
	return 0, false
}

// daily tells whether one of Google's violated quotas is for a day.
func (p problem) daily() bool {
	for _, d := range p.details() {
		for _, v := range d.Violations {
			if strings.Contains(v.QuotaID, "PerDay") {
				return true
			}
		}
	}
	return false
}

// spent tells whether Anthropic says that what may be spent is spent.
func (p problem) spent() bool {
	var d struct {
		Code string `json:"error_code"`
	}
	return json.Unmarshal(p.Details, &d) == nil && strings.Contains(d.Code, "spend_limit")
}
