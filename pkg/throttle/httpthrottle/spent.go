package httpthrottle

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// spentCodes are the codes and types of refusals that no wait cures, without the characters that join their words, and with the services
// that use them. A code counts anywhere in the body: in other spellings, in an object in another, in a text.
var spentCodes = map[string]string{ //nolint:gosec // G101: words of services, no credentials
	"insufficientquota":             "OpenAI, Perplexity, LiteLLM",
	"creditbalanceexhausted":        "OpenAI",
	"billinghardlimitreached":       "OpenAI",
	"billingnotactive":              "OpenAI",
	"accessterminated":              "OpenAI",
	"exceededcurrentquotaerror":     "Moonshot",
	"budgetexceeded":                "LiteLLM",
	"1113":                          "Zhipu: the account is in arrears",
	"1309":                          "Zhipu: the plan has ended",
	"insufficientuserquota":         "One API, New API",
	"preconsumetokenquotafailed":    "One API, New API",
	"insufficientbalance":           "DeepSeek and others",
	"insufficientcredits":           "OpenRouter and others",
	"insufficientfunds":             "gateways",
	"creditsexhausted":              "gateways",
	"outofcredits":                  "gateways",
	"paymentrequired":               "gateways",
	"arrearage":                     "Alibaba Model Studio",
	"prepaidbilloverdue":            "Alibaba Model Studio",
	"postpaidbilloverdue":           "Alibaba Model Studio",
	"commoditynotpurchased":         "Alibaba Model Studio",
	"allocationquota.freetieronly":  "Alibaba Model Studio",
	"accountoverdueerror":           "Volcengine Ark",
	"spendlimitreached":             "Anthropic, Groq",
	"enforcedspendlimitreached":     "Anthropic",
	"publicapibillinglimitexceeded": "Airtable: the calls of a month",
}

// spentWords finds codes in a text, where gateways put the answer of the service behind them. They have
// an underscore, so no sentence has them by chance.
var spentWords = regexp.MustCompile(`\b(insufficient_(?:user_)?quota|exceeded_current_quota_error|budget_exceeded|` +
	`billing_hard_limit_reached|billing_not_active|credit_balance_exhausted|access_terminated|\w*spend_limit_reached)\b`)

// spentPhrases are sentences, in lower case, of services that have no code for it, with the code that the refusal gets.
var spentPhrases = [...]struct{ phrase, code string }{
	{"insufficient balance", "insufficient_balance"},                           // DeepSeek
	{"balance is insufficient", "insufficient_balance"},                        // SiliconFlow
	{"insufficient credit", "insufficient_credits"},                            // OpenRouter
	{"credit balance is too low", "insufficient_credits"},                      // Anthropic
	{"credits are depleted", "insufficient_credits"},                           // Gemini
	{"used all available credits", "insufficient_credits"},                     // xAI
	{"exceeded your monthly included credits", "insufficient_credits"},         // Hugging Face
	{"budget has been exceeded", "budget_exceeded"},                            // LiteLLM
	{"reached its monthly spending limit", "spend_limit_reached"},              // xAI
	{"reaching the monthly spending limit", "spend_limit_reached"},             // Fireworks
	{"reached your specified api usage limits", "spend_limit_reached"},         // Anthropic
	{"billing hard limit has been reached", "billing_hard_limit_reached"},      // OpenAI
	{"account is not active, please check your billing", "billing_not_active"}, // OpenAI
	{"too many tokens per day", "tokens_per_day"},                              // Amazon Bedrock
	{"api calls / month", "calls_per_month"},                                   // Cohere's trial keys
	{"free allocated quota exceeded", "free_quota_exceeded"},                   // Alibaba Model Studio
	{"free tier of the model has been exhausted", "free_quota_exceeded"},       // Alibaba Model Studio
}

// soon finds that a text speaks of a limit for a time short enough to wait for.
var soon = regexp.MustCompile(`(?i)(?:\b(?:per|a|each)|/)[ -]?(?:second|minute|hour)\b`)

// spentByCode reports whether a code where services have theirs says that a quota or budget is spent.
func (r *remarks) spentByCode() (code string, ok bool) {
	for _, word := range r.faults {
		if isSpent(word) && strings.Trim(word, "0123456789") != "" { // numbers mean it only in a refusal
			return spelt(word), true
		}
	}
	return "", false
}

// spent reports whether the body says that a quota or budget is spent, and with what code.
func (r *remarks) spent() (code string, ok bool) {
	for _, word := range r.words {
		if isSpent(word) {
			return spelt(word), true
		}
	}
	for _, text := range r.texts {
		if word := spentWords.FindString(text); word != "" {
			return clean(word), true
		}
	}
	for _, text := range r.texts {
		if len(text) > longestText {
			text = text[:longestText]
		}
		if _, _, reported := (clock{}).inText(text); reported || soon.MatchString(text) {
			continue
		}
		text = strings.ToLower(text)
		for _, p := range spentPhrases {
			if strings.Contains(text, p.phrase) {
				return p.code, true
			}
		}
	}
	return "", false
}

// limitAndAsked finds the limit and what a request would take of it.
var limitAndAsked = regexp.MustCompile(`\bLimit (\d+),(?: Used \d+,)? Requested (\d+)\b`)

// tooLarge reports whether the body says that the request is larger than a limit, so that no wait helps.
func (r *remarks) tooLarge() bool {
	return slices.ContainsFunc(r.texts, func(text string) bool {
		text = text[:min(len(text), longestText)]
		if _, _, reported := (clock{}).inText(text); reported {
			return false
		}
		if strings.HasPrefix(text, "Request too large") {
			return true
		}
		n := limitAndAsked.FindStringSubmatch(text)
		if n == nil {
			return false
		}
		limit, err := strconv.Atoi(n[1])
		asked, failed := strconv.Atoi(n[2])
		return err == nil && failed == nil && asked > limit
	})
}

// spelt returns a code in a form fit for errors and labels: a sentence becomes lower case, without blanks.
func spelt(code string) string {
	if fit := clean(code); fit != "" {
		return fit
	}
	return clean(strings.ReplaceAll(strings.ToLower(strings.TrimSuffix(code, ".")), " ", "_"))
}

// isSpent reports whether a code says that something is spent.
func isSpent(code string) bool {
	name := plain(code)
	return spentCodes[name] != "" || strings.Contains(name, "spendlimit")
}

// specific reports whether a code says more than a number does. It is a code for something spent, or the code that the service gives beside
// such a type.
func (r *remarks) specific(code string) bool {
	return isSpent(code) || code == clean(r.code) && isSpent(r.kind) && strings.Trim(code, "0123456789") != ""
}
