package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/open"
)

// template is what all requests have in common.
func (s *settings) template() (*chat.Template, error) {
	var fields []chat.Field
	if s.MaxTokens > 0 {
		fields = append(fields, chat.Field{Key: string(s.tokensField()), Value: s.MaxTokens})
	}
	if t, _ := s.temperature(); t != nil {
		fields = append(fields, chat.Field{Key: "temperature", Value: *t})
	}
	return chat.NewTemplate(s.Model, fields, s.ExtraBody)
}

// tokensField is the field that says how long an answer may be.
func (s *settings) tokensField() tokensField {
	switch {
	case s.MaxTokensField == completionTokens, s.MaxTokensField == plainTokens:
		return s.MaxTokensField
	case s.Provider == openAI, isReasoning(s.Model):
		return completionTokens // max_tokens is deprecated there
	}
	return plainTokens // which all others know
}

// isReasoning tells models that refuse max_tokens wherever they run, by their name behind that of their vendor.
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

// endpoint is where requests are sent.
func (s *settings) endpoint() string {
	const path = "/chat/completions"
	base := strings.TrimRight(s.BaseURL, "/")
	if s.Provider != azure {
		return base + path
	}
	query := ""
	if s.APIVersion != "" {
		query = "?api-version=" + url.QueryEscape(s.APIVersion)
	}
	if s.isVersionless() {
		return base + path + query
	}
	return strings.TrimSuffix(base, "/openai") + "/openai/deployments/" + url.PathEscape(s.Model) + path + query
}

// isVersionless tells whether baseURL is that of Azure's API without versions, where the model stands in the body alone.
func (s *settings) isVersionless() bool {
	return strings.HasSuffix(strings.TrimRight(s.BaseURL, "/"), "/openai/v1")
}

// loginHeader is the header among those of the user that logs in; empty for none.
func (s *settings) loginHeader() string {
	h, _ := config.ParseHeaders(s.Headers)
	for _, name := range []string{"Authorization", "Api-Key", "X-Api-Key"} {
		if h.Get(name) != "" {
			return name
		}
	}
	return ""
}

// ownHeaders are made by the program or by net/http, and would be sent twice, or keep a call from being sent at all.
var ownHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Idempotency-Key", "Keep-Alive",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "X-Idempotency-Key",
}

// checkRequest finds settings with which no request could be sent. Defaults are filled in.
func (s *settings) checkRequest(bad func(field, problem, allowed string)) {
	if t, err := s.template(); err != nil {
		bad("extraBody", err.Error(), "a JSON object without model, messages and what another setting sets")
	} else if s.MaxTokens > 0 && t.MaxTokens() > 0 {
		bad("extraBody", "says how long an answer may be, and so does maxTokens", "one of them")
	} else if most := t.MaxTokens() * t.Choices(); s.TokensPerMinute > 0 && most > s.TokensPerMinute {
		bad("extraBody", fmt.Sprintf("allows answers of %d tokens, which no call could ever draw", most),
			fmt.Sprintf("at most tokensPerMinute, which is %d", s.TokensPerMinute))
	}
	h, _ := config.ParseHeaders(s.Headers)
	for _, name := range ownHeaders {
		if h.Get(name) != "" {
			bad("headers", "sets "+name, "not "+strings.Join(ownHeaders, ", "))
		}
	}
	if name := s.loginHeader(); name != "" && (s.APIKey.IsSet() || s.APIKeyFile != "") && name == s.keyHeader() {
		bad("headers", "sets "+name+", and so does the key", "one of them")
	}
	s.checkURL(bad)
}

// keyHeader is the header that the key is put into.
func (s *settings) keyHeader() string {
	h := http.Header{}
	providers[s.Provider].login(h, "key")
	for name := range h {
		return name
	}
	return ""
}

// checkURL finds what keeps a URL from being reached that is one by its form.
func (s *settings) checkURL(bad func(field, problem, allowed string)) {
	u, err := url.Parse(s.endpoint())
	if err != nil || s.BaseURL == "" {
		return // told already
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			bad("baseURL", "has the port "+port, "1 to 65535")
		}
	}
	if _, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err != nil { // the error shows the variable, and so its password
		bad("HTTP_PROXY or HTTPS_PROXY", "is no URL of a proxy (not shown)", "such as http://proxy:3128")
	}
}

// checkLimits finds limits that cannot be opened. Defaults are filled in.
// checkQuotas finds what is wrong with the quotas for the limit that they belong to.
func (s *settings) checkQuotas(bad func(field, problem, allowed string)) {
	c := s.Pool
	c.Quotas, c.Limit = s.Quotas, s.requestLimit()
	if s.TokensPerMinute > 0 {
		c.Limit = s.tokenLimit()
	}
	if c.Quotas.Given() && c.Limit.Max == 0 {
		bad("quotas", "are set, but there is no limit that they are parts of", "with tokensPerMinute or requestsPerMinute")
		return
	}
	for _, err := range open.CheckQuotas(&c) {
		bad("the limit", "cannot have such quotas: "+strings.TrimPrefix(err.Error(), "numathrottle: "), "")
	}
}

func (s *settings) checkLimits(bad func(field, problem, allowed string)) {
	for _, err := range config.Split(s.requestLimit().Validate()) {
		limitFault(err, "requestsPerMinute", bad)
	}
	for _, err := range config.Split(s.tokenLimit().Validate()) {
		limitFault(err, "tokensPerMinute", bad)
	}
	if ramp := s.Pool.Limit; (ramp.Min != 0 || ramp.RampUpDuration != 0) && s.RequestsPerMinute+s.TokensPerMinute == 0 {
		bad("min and rampUpDuration", "are set, but there is no limit that ramps up", "with tokensPerMinute or requestsPerMinute")
	}
	s.checkQuotas(bad)
	if s.AdaptiveMin > 0 && !s.Adaptive {
		bad("adaptiveMin", "is set without adaptive", "with adaptive: true")
	}
	if s.MaxReserved > 0 && !s.Strict {
		bad("maxReserved", "is set without strict", "with strict: true")
	}
	if !s.Strict {
		return
	}
	if s.RequestsPerMinute == 0 {
		bad("strict", "is true, but there is no limit on requests", "with requestsPerMinute")
	}
	if s.Pool.OnStoreLoss == numathrottle.StoreLossDegrade {
		bad("onStoreLoss", "is degrade, but a strict limit has nothing to go on with", "`stop` with strict")
	}
	if store, _ := config.ParseStore(s.Pool.Store); store.Kind == config.Static {
		bad("strict", "is true, but the store is static", "false with static://, which issues nothing")
	}
}
