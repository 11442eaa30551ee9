package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/program"
)

// template returns the common part of all requests.
func (s *settings) template() (*chat.Template, error) {
	var fields []chat.Field
	switch {
	case s.MaxTokens > 0:
		fields = append(fields, chat.Field{Key: string(s.tokensField()), Value: s.MaxTokens})
	case s.API == chat.Messages: // which requires it
		fields = append(fields, chat.Field{Key: string(plainTokens), Value: s.OutputTokens, Default: true})
	}
	if t, _ := s.temperature(); t != nil {
		fields = append(fields, chat.Field{Key: "temperature", Value: *t})
	}
	return chat.NewTemplate(s.API, s.Model, fields, s.ExtraBody)
}

// tokensField returns the field that bounds the length of an answer.
func (s *settings) tokensField() tokensField {
	switch {
	case s.API == chat.Responses:
		return outputTokens
	case s.API == chat.Messages:
		return plainTokens
	case s.MaxTokensField == completionTokens, s.MaxTokensField == plainTokens:
		return s.MaxTokensField
	case s.Provider == profile.OpenAI, isReasoning(s.Model):
		return completionTokens // max_tokens is deprecated there
	}
	return plainTokens // all others know it
}

// isReasoning reports whether a model refuses max_tokens at any provider, by its name after that of the vendor.
func isReasoning(model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	if rest, ok := strings.CutPrefix(name, "o"); ok {
		return rest != "" && rest[0] >= '1' && rest[0] <= '9'
	}
	rest, ok := strings.CutPrefix(name, "gpt-")
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	version, err := strconv.Atoi(rest[:digits])
	return ok && err == nil && version >= 5 && version < 30 // not gpt-35, as Azure writes 3.5
}

// endpoint returns the URL for requests.
func (s *settings) endpoint() string {
	base, path := strings.TrimRight(s.BaseURL, "/"), s.API.Path()
	if s.Provider != profile.Azure {
		return base + path
	}
	query := ""
	if s.APIVersion != "" {
		query = "?api-version=" + url.QueryEscape(s.APIVersion)
	}
	if s.isVersionless() || s.API == chat.Messages {
		return base + path + query
	}
	resource := strings.TrimSuffix(base, "/openai") + "/openai"
	switch {
	case s.API == chat.Responses && query == "":
		return resource + "/v1" + path
	case s.API == chat.Responses:
		return resource + path + query
	}
	return resource + "/deployments/" + url.PathEscape(s.Model) + path + query
}

// isVersionless reports whether baseURL is that of Azure's API without versions, where only the body names the model.
func (s *settings) isVersionless() bool {
	return strings.HasSuffix(strings.TrimRight(s.BaseURL, "/"), "/openai/v1")
}

// loginHeader returns the header of the user's headers that logs in; empty for none.
func (s *settings) loginHeader() string {
	h, _ := config.ParseHeaders(s.Headers)
	for _, name := range []string{"Authorization", "Api-Key", "X-Api-Key"} {
		if h.Get(name) != "" {
			return name
		}
	}
	return ""
}

// ownHeaders are set by the program or by net/http. They would be sent twice, or keep a call from being sent at all.
var ownHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Idempotency-Key", "Keep-Alive",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "X-Idempotency-Key",
}

// checkBody finds settings that contradict each other in the body of a request.
func (s *settings) checkBody(bad program.Complaint) {
	t, err := s.template()
	if err != nil {
		bad("extraBody", err.Error(), "a JSON object without model, messages (input of responses and embeddings) and what another setting sets")
		return
	}
	if s.API == chat.Messages && s.System != "" && t.Sets("system") {
		bad("extraBody", "has a system message, and so has the setting system", "one of them")
	}
	most := t.MaxTokens() * t.Choices()
	switch tooMuch := s.TokensPerMinute > 0 && most > s.TokensPerMinute && s.drawsLongest(); {
	case s.MaxTokens > 0 && most > 0:
		bad("extraBody", "says how long an answer may be, and so does maxTokens", "one of them")
	case tooMuch && s.API == chat.Messages && !t.Sets("max_tokens"):
		bad("outputTokens", fmt.Sprintf("is %d, which is sent as max_tokens and which no call could ever draw", s.OutputTokens),
			fmt.Sprintf("at most tokensPerMinute, which is %d", s.TokensPerMinute))
	case tooMuch:
		bad("extraBody", fmt.Sprintf("allows answers of %d tokens, which no call could ever draw", most),
			fmt.Sprintf("at most tokensPerMinute, which is %d", s.TokensPerMinute))
	}
}

// checkRequest finds settings that allow no request. Defaults are filled in.
func (s *settings) checkRequest(bad program.Complaint) {
	s.checkBody(bad)
	h, _ := config.ParseHeaders(s.Headers)
	for _, name := range ownHeaders {
		if h.Get(name) != "" {
			bad("headers", "sets "+name, "not "+strings.Join(ownHeaders, ", "))
		}
	}
	if name := s.loginHeader(); name != "" && s.APIKey.IsSet() && name == s.keyHeader() {
		bad("headers", "sets "+name+", and so does the key", "one of them")
	}
	s.checkURL(bad)
}

// keyHeader returns the header for the key.
func (s *settings) keyHeader() string {
	h := http.Header{}
	s.login()(h, "key")
	for name := range h {
		return name
	}
	return ""
}

// checkURL finds faults of a well-formed URL that keep it from being reached.
func (s *settings) checkURL(bad program.Complaint) {
	u, err := url.Parse(s.endpoint())
	if err != nil || s.BaseURL == "" {
		return // already reported
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			bad("baseURL", "has the port "+port, "1 to 65535")
		}
	}
	if _, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err != nil { // the error would show the variable, and so its password
		bad("HTTP_PROXY or HTTPS_PROXY", "is no URL of a proxy (not shown)", "such as http://proxy:3128")
	}
}

// checkQuotas finds faults of the quotas and of their limit. Defaults are filled in.
func (s *settings) checkQuotas(bad program.Complaint) {
	c, of := s.Pool, s.shaped()
	c.Quotas, c.Limit = s.Quotas, of.QuotaLimit()
	if c.Quotas.Given() && c.Limit.Max == 0 {
		bad("quotas", "are set, but there is no limit that they are parts of", "with a limit per minute")
		return
	}
	for _, err := range opening.CheckQuotas((*opening.Config)(&c)) {
		bad("the limit", "cannot have such quotas: "+strings.TrimPrefix(err.Error(), "numathrottle: "), "")
	}
}

func (s *settings) checkLimits(bad program.Complaint) {
	of := s.shaped()
	for key, limit := range of.Limits() {
		for _, err := range config.Split(limit.Validate()) {
			limitFault(err, key, bad)
		}
	}
	if ramp := s.Pool.Limit; (ramp.Min != 0 || ramp.RampUpDuration != 0) && of.QuotaLimit().Max == 0 {
		bad("min and rampUpDuration", "are set, but there is no limit that ramps up", "with a limit per minute")
	}
	s.checkQuotas(bad)
	for _, err := range of.CheckPools(account.Budget{}) {
		if f, ok := errors.AsType[*config.FieldError](err); ok {
			bad(f.Field, f.Problem, f.Allowed)
		}
	}
	if s.AdaptiveMin > 0 && !s.Adaptive {
		bad("adaptiveMin", "is set without adaptive", "with adaptive: true")
	}
	if s.MaxReserved > 0 && !s.Strict {
		bad("maxReserved", "is set without strict", "with strict: true")
	}
	if !s.Strict {
		return
	}
	if _, ok := of.Limits()["requestsPerMinute"]; !ok {
		bad("strict", "is true, but there is no limit on requests", "with requestsPerMinute")
	}
	if s.Pool.OnStoreLoss == numathrottle.StoreLossDegrade {
		bad("onStoreLoss", "is degrade, but a strict limit has nothing to go on with", "`stop` with strict")
	}
	if store, _ := config.ParseStore(s.Pool.Store); store.Kind == config.Static {
		bad("strict", "is true, but the store is static", "false with static://, which issues nothing")
	}
}
