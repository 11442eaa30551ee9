package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/internal/taglevel"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// settings holds all settings. The zero value of a field is its default.
type settings struct {
	// Config has the provider, the limits and how calls count against them, their quotas and the pool.
	account.Config

	API        chat.API
	BaseURL    string
	APIVersion string
	Model      string
	APIKey     program.Credential

	System, SystemFile string
	Prompt, PromptFile string
	MaxTokens          int
	MaxTokensField     tokensField
	MaxPromptTokens    int
	// MaxInputs, MaxInputTokens and MaxCallTokens are what a call for embeddings may hold.
	MaxInputs, MaxInputTokens, MaxCallTokens int

	Temperature        string
	ExtraBody          string
	Headers            string
	Input              inputForm
	Output, OutputFile string

	Adaptive    bool
	AdaptiveMin int
	Strict      bool
	MaxReserved int
	BurstTime   time.Duration
	Tag         string

	Timeout     time.Duration
	MaxAttempts int
	OnStop      stopAction
	MaxWait     time.Duration
	OnDenied    deniedAction
	MaxPause    time.Duration

	// Deployments are further targets, in order of preference; see deployments.go. Deployment is the name of these settings' own
	// deployment.
	Deployments []deploymentSettings
	Deployment  string
	targets     []settings // of each deployment, in the same order
	APIKeyEnv   string     // of a deployment: the variable that holds its key
	SpillAfter  time.Duration

	Prices map[string]account.Price // by model
	Budget account.Budget

	Socket     string
	ServerInfo string
}

func poolOf(s *settings) *opening.Config { return (*opening.Config)(&s.Pool) }

// A stopAction is the treatment of a message when the provider says that no waiting helps.
type stopAction string

const (
	holdOnStop   stopAction = "hold"
	resultOnStop stopAction = "result"
)

// A deniedAction is the treatment of a message whose next call would wait for longer than maxWait.
type deniedAction string

const (
	waitOnDenied deniedAction = "wait"
	nackOnDenied deniedAction = "nack"
)

// A tokensField is the field of a request that bounds the length of an answer.
type tokensField string

const (
	autoTokens       tokensField = "auto"
	completionTokens tokensField = "max_completion_tokens"
	plainTokens      tokensField = "max_tokens"
	outputTokens     tokensField = "max_output_tokens" // of the responses API; no choice
)

// An inputForm is how a message is passed on with its result.
type inputForm string

const (
	noInput       inputForm = "none"
	inputText     inputForm = "text"
	inputJSON     inputForm = "json"
	inputMetadata inputForm = "metadata"
)

// prefix is the prefix of the variables of this program's own settings. The pool uses numathrottle's.
const prefix = "LLM_MAP_"

const aTemplate = "a text/template over the message"

// fields lists all settings of this program, in the order of the reference.
var fields = slices.Concat(ownFields, llmFields, rampFields, config.WithPrefix(prefix, manyFields...), moneyFields)

// llmFields are the settings of limits on LLMs, which other programs have too.
var llmFields = config.WithPrefix(prefix, slices.Concat(account.LimitFields(accountOf), account.CountFields(accountOf))...)

func accountOf(s *settings) *account.Config { return &s.Config }

// moneyFields are prices and their budget.
var moneyFields = config.WithPrefix(prefix, account.MoneyFields(
	func(s *settings) *map[string]account.Price { return &s.Prices }, func(s *settings) *account.Budget { return &s.Budget })...)

// ownFields lists all settings except those of several deployments.
var ownFields = config.WithPrefix(prefix,
	config.ChoiceField("provider", "Whose headers, refusals and way of counting the endpoint has",
		func(s *settings) *profile.Name { return &s.Provider }, profile.Names()...),
	config.ChoiceField("api", "[The API](#the-api) of the endpoint: chat completions, OpenAI's responses, Anthropic's messages, or [embeddings](#embeddings)",
		func(s *settings) *chat.API { return &s.API }, chat.Chat, chat.Responses, chat.Messages, chat.Embeddings),
	config.EndpointField("baseURL", "the provider's; required for `azure`, `bedrock`, `bedrock-mantle` and `self-hosted`",
		"Where the endpoint is: what stands before `/chat/completions` and its like; of Azure the resource, `https://NAME.openai.azure.com`",
		func(s *settings) *string { return &s.BaseURL }).Like("https://llm.example.com/v1"),
	config.TextField("apiVersion", "a text, with `azure` only", "`2024-10-21` with `chat` and `embeddings`", "The API version of Azure",
		func(s *settings) *string { return &s.APIVersion }).Like("2024-10-21"),
	config.TextField("model", "a text", "none: it is required", "The model; of Azure the deployment",
		func(s *settings) *string { return &s.Model }).Like("gpt-4o-mini"),
	program.SecretField("apiKey", "The key of the endpoint", func(s *settings) *numathrottle.Secret { return &s.APIKey.Text }),
	config.PathField("apiKeyFile", "none", "The key in a file, such as a mounted Secret; read anew for every call",
		func(s *settings) *string { return &s.APIKey.File }),
	config.LinesField("system", aTemplate, "none", "The system message", func(s *settings) *string { return &s.System }).Like("Answer in one word."),
	config.PathField("systemFile", "none", "The same in a file; read at the start", func(s *settings) *string { return &s.SystemFile }),
	config.LinesField("prompt", aTemplate, "`{{.Text}}`", "The user message", func(s *settings) *string { return &s.Prompt }).Like("Sentiment of: {{.Text}}"),
	config.PathField("promptFile", "none", "The same in a file; read at the start", func(s *settings) *string { return &s.PromptFile }),
	config.NumberField("maxTokens", 0, 1_000_000, "0: the provider's", "How long an answer may be, in tokens",
		func(s *settings) *int { return &s.MaxTokens }).In("tokens").Like("256"),
	config.ChoiceField("maxTokensField", "The field of the request that says so. `auto`: `max_completion_tokens` for `openai`, and for models whose name, "+
		"behind the last `/`, begins with o and a digit or with gpt-5 and up; else `max_tokens`. Set it for an Azure deployment of such a model. "+
		"With `api: chat` only",
		func(s *settings) *tokensField { return &s.MaxTokensField }, autoTokens, completionTokens, plainTokens),
	config.NumberField("maxPromptTokens", 0, 1_000_000_000, "0: `tokensPerMinute` alone bounds it",
		"Longer prompts, by the estimate, are answered with an error at once", func(s *settings) *int { return &s.MaxPromptTokens }).In("tokens").Like("8000"),
	config.NumberField("maxInputs", 1, 100_000, "2048; `cohere` 96, `gemini` 100", "How many texts a call may have; with `api: embeddings`",
		func(s *settings) *int { return &s.MaxInputs }).In("texts").Like("256"),
	config.NumberField("maxInputTokens", 1, 1_000_000_000, "8192; `gemini` 2048",
		"A text that is longer, by the estimate, has a call for itself, and the provider decides; with `api: embeddings`",
		func(s *settings) *int { return &s.MaxInputTokens }).In("tokens").Like("32000"),
	config.NumberField("maxCallTokens", 1, 1_000_000_000, "300000",
		"How long the texts of a call may be together; a call is closed at 90 % of it, by the estimate; with `api: embeddings`",
		func(s *settings) *int { return &s.MaxCallTokens }).In("tokens").Like("120000"),
	config.Field[*settings]{
		Key: "temperature", Example: "0.2", Allowed: "0 to 2", Default: "the provider's", Doc: "The sampling temperature",
		Value: config.Text(func(s *settings) *string { return &s.Temperature }),
		Range: func(s *settings) bool { _, ok := s.temperature(); return ok },
	},
	config.Field[*settings]{
		Key: "extraBody", Example: "{top_p: 0.9}", Allowed: "a JSON object; in the file also a mapping", Default: "none",
		Doc: "More fields of the request, sent as they are: `response_format`, `top_p`, `stop`, `seed`, `tools`, `reasoning_effort`, " +
			"whatever the provider knows. Not `model` and `messages` (`input` of `responses` and `embeddings`), nor what another setting sets",
		Value: config.Object(func(s *settings) *string { return &s.ExtraBody }),
	},
	config.Field[*settings]{
		Key: "headers", Example: "X-Team: search", Allowed: "lines of `Name: value`", Default: "none",
		Doc:   "More headers of the request; their values are never printed",
		Value: config.HeaderLines(func(s *settings) *string { return &s.Headers }),
	},
	config.ChoiceField("input", "How the message goes on beside its result: not at all, in the result as `input`, a text, or, if it is JSON, as that; "+
		"or in the user metadata, group `llm-map`, key `input`, beside the message's own",
		func(s *settings) *inputForm { return &s.Input }, noInput, inputText, inputJSON, inputMetadata),
	config.LinesField("output", anOutput, "the result as JSON", "What a result becomes; an error stays JSON",
		func(s *settings) *string { return &s.Output }).Like("{{.Answer}}"),
	config.PathField("outputFile", "none", "The same in a file; read at the start", func(s *settings) *string { return &s.OutputFile }),
	config.NumberField("requestsPerMinute", 0, 1_000_000_000, "0: no limit", "Calls per minute, over the whole pool",
		func(s *settings) *int { return &s.RequestsPerMinute }).In("calls").Like("500"),
	config.NumberField("inFlight", 0, 1_000_000_000, "0: no limit",
		"Calls under way at once, over the whole pool; several times the number of pods", func(s *settings) *int { return &s.InFlight }).In("calls").Like("64"),
	config.Field[*settings]{
		Key: "adaptive", Shared: true, Allowed: "`true` or `false`", Default: "`false`",
		Doc: "The main limit, which is the first of tokens, input, output and requests that is set, falls while the provider refuses calls, " +
			"and rises again; see [limits.md](../../docs/limits.md#limits-that-follow-the-service)",
		Value: config.Bool(func(s *settings) *bool { return &s.Adaptive }),
	},
	shared(config.NumberField("adaptiveMin", 1, 1_000_000_000, "a hundredth of that limit",
		"What may be used of that limit however many calls are refused, per minute; with `adaptive`",
		func(s *settings) *int { return &s.AdaptiveMin }).In("tokens or calls").Like("1000")),
	shared(config.BoolField("strict", "Calls of the whole pool start at least a minute / `requestsPerMinute` apart, each issued by the store; "+
		"the limits on tokens and on calls in flight stay as they are. See [limits.md](../../docs/limits.md#strict-limits)",
		func(s *settings) *bool { return &s.Strict })),
	shared(config.NumberField("maxReserved", 0, 1000, "0", "How many calls that the store issues may be reserved ahead; with `strict`",
		func(s *settings) *int { return &s.MaxReserved }).In("calls").Like("10")),
	config.DurationField("burstTime", 10*time.Millisecond, time.Minute, "`1s`", "How much of the two limits per minute the pool can save up",
		func(s *settings) *time.Duration { return &s.BurstTime }).Like("500ms"),
	taglevel.MessageField("For which tenant, model or user a message draws; see `quotas`", func(s *settings) *string { return &s.Tag }),
	shared(opening.ManyQuotasField(account.QuotaLimits, "with a limit per minute, and not with `policy: even` or `static://`",
		"What tags may use of the limits that they name, or of the main limit, see `adaptive`; amounts are per minute unless they name a `per`. "+
			"See [quotas.md](../../docs/quotas.md)",
		func(s *settings) *throttle.Quotas { return &s.Quotas }, func(s *settings) *opening.QuotasOf { return &s.QuotasOf })),
	config.DurationField("timeout", time.Second, time.Hour, "`2m`", "How long one call may take, not counting what it waits for the limits",
		func(s *settings) *time.Duration { return &s.Timeout }).Like("1m"),
	config.NumberField("maxAttempts", 1, 1000, "8",
		"How often a call may fail before the message is answered with an error; refusals do not count",
		func(s *settings) *int { return &s.MaxAttempts }).In("times").Like("4"),
	config.ChoiceField("onStop", "What becomes of a message when no waiting helps (a spent quota, a wrong key): it waits, and "+
		"one call a minute tries whether it is mended, or it is answered with an error",
		func(s *settings) *stopAction { return &s.OnStop }, holdOnStop, resultOnStop),
	config.DurationField("maxWait", 10*time.Millisecond, time.Hour, "none: it waits",
		"How long a message waits for its next call, for the limits or because the provider asks for it; with `onDenied: nack`. Best below `10s`",
		func(s *settings) *time.Duration { return &s.MaxWait }).Like("8s"),
	config.ChoiceField("onDenied", "What becomes of a message whose next call would wait for longer: it waits, or it is given back and delivered again "+
		"after the delay, which **loses it** with [some sources](../../docs/wrappers.md#what-happens-when-tokens-do-not-come)",
		func(s *settings) *deniedAction { return &s.OnDenied }, waitOnDenied, nackOnDenied),
	config.DurationField("maxPause", 10*time.Millisecond, throttle.DefaultMaxRetryAfter, "`5m`",
		"How long one refusal of the provider holds back the other calls, of this process and of the pool; what it asks for beyond that is logged",
		func(s *settings) *time.Duration { return &s.MaxPause }).Like("1m"),
	config.PathField("socket", "numaflow-go's", "The unix socket to listen on, outside Numaflow",
		func(s *settings) *string { return &s.Socket }).Like("/tmp/map.sock"),
	config.PathField("serverInfo", "numaflow-go's", "The server-info file to write, outside Numaflow",
		func(s *settings) *string { return &s.ServerInfo }).Like("/tmp/mapper-server-info"),
)

// shared returns a field whose variable may also have the prefix of every program of this module.
func shared(f config.Field[*settings]) config.Field[*settings] {
	f.Shared = true
	return f
}

// temperature returns the setting; nil for none.
func (s *settings) temperature() (*float64, bool) {
	if s.Temperature == "" {
		return nil, true
	}
	f, err := strconv.ParseFloat(s.Temperature, 64)
	if err != nil || !(f >= 0 && f <= 2) {
		return nil, false
	}
	return &f, true
}

// finish reads the files that settings name, and fills in the defaults. It finds every fault, including those of the files.
func finish(s *settings, r *config.Reading) {
	bad := program.ComplainTo(r)
	s.checkShared(bad)
	for _, f := range []struct {
		key, file string
		text      *string
	}{{"systemFile", s.SystemFile, &s.System}, {"promptFile", s.PromptFile, &s.Prompt}, {"outputFile", s.OutputFile, &s.Output}} {
		if f.file == "" {
			continue
		}
		content, err := os.ReadFile(f.file)
		if err != nil {
			bad(f.key, fmt.Sprintf("is %q, which cannot be read: %v", f.file, err), "")
			continue
		}
		*f.text = strings.TrimSuffix(string(content), "\n")
	}
	s.checkTargets(r, bad)
	*s = withDefaults(*s)
	if _, err := newPrompt(s.System, s.Prompt); err != nil {
		r.Note(err)
	}
	if _, err := newOutput(s.Output); err != nil {
		r.Note(err)
	}
}

// checkShared finds settings of all deployments that contradict each other.
func (s *settings) checkShared(bad program.Complaint) {
	bad.OneOf("one of them", program.Given("system", s.System != ""), program.Given("systemFile", s.SystemFile != ""))
	bad.OneOf("one of them", program.Given("prompt", s.Prompt != ""), program.Given("promptFile", s.PromptFile != ""))
	bad.OneOf("one of them", program.Given("output", s.Output != ""), program.Given("outputFile", s.OutputFile != ""))
	if s.MaxWait > 0 && s.OnDenied != nackOnDenied {
		bad("maxWait", "is set without an onDenied that ends the wait", "with onDenied: nack")
	}
	if s.MaxWait == 0 && s.OnDenied == nackOnDenied {
		bad("onDenied", "is nack without a maxWait", "with maxWait")
	}
	if most := s.longestPool(); len(s.Pool.Pool) > most {
		bad("pool", fmt.Sprintf("has %d bytes", len(s.Pool.Pool)), fmt.Sprintf("at most %d, for there are pools below it", most))
	}
}

// checkTogether finds settings that contradict each other.
func (s *settings) checkTogether(bad program.Complaint) {
	if s.Model == "" {
		bad("model", "is not set", "a model of the endpoint")
	}
	if s.BaseURL == "" && providers[s.providerOrDefault()].baseURL == "" {
		bad("baseURL", fmt.Sprintf("is not set, and %s has none of its own", s.Provider), "an http or https URL")
	}
	if s.APIVersion != "" && s.Provider != profile.Azure {
		bad("apiVersion", fmt.Sprintf("is set, but the provider is %s", s.providerOrDefault()), "with azure")
	}
	if s.MaxTokensField != "" && s.MaxTokensField != autoTokens && s.API != "" && s.API != chat.Chat {
		bad("maxTokensField", fmt.Sprintf("is set, but the api is %s", s.API), "with api: chat")
	}
	if lacks := providers[s.providerOrDefault()].lacks; s.BaseURL == "" && slices.Contains(lacks, s.API) {
		bad("api", fmt.Sprintf("is %q, which %s does not have", s.API, s.providerOrDefault()), "another api, or the baseURL of a gateway")
	}
	bad.OneOf("one of them", program.Given("maxTokens", s.MaxTokens != 0), program.Given("outputTokens", s.OutputTokens != 0))
	s.APIKey.Check("apiKey", true, bad)
	if !s.APIKey.IsSet() && s.APIKeyEnv == "" && s.Provider != profile.SelfHosted && s.loginHeader() == "" {
		bad("apiKey and apiKeyFile", "are not set", "one of them, unless the provider is self-hosted")
	}
	if s.TokensPerMinute > 0 && s.MaxTokens > s.TokensPerMinute && s.drawsLongest() {
		bad("maxTokens", fmt.Sprintf("is %d, which no call could ever draw", s.MaxTokens),
			fmt.Sprintf("at most tokensPerMinute, which is %d", s.TokensPerMinute))
	}
}

func (s *settings) providerOrDefault() profile.Name {
	if s.Provider == "" {
		return profile.OpenAI
	}
	return s.Provider
}

// withDefaults returns s with unset settings filled in.
func withDefaults(s settings) settings {
	s.Provider = s.providerOrDefault()
	p := providers[s.Provider]
	program.OrDefault(&s.BaseURL, p.baseURL)
	program.OrDefault(&s.API, chat.Chat)
	if s.Provider == profile.Azure && (s.API == chat.Chat || s.embeds()) && !s.isVersionless() {
		program.OrDefault(&s.APIVersion, "2024-10-21")
	}
	if s.Prompt == "" && s.PromptFile == "" {
		s.Prompt = "{{.Text}}"
	}
	if s.embeds() {
		program.OrDefault(&s.MaxInputs, cmp.Or(p.maxInputs, defaultMaxInputs))
		program.OrDefault(&s.MaxInputTokens, cmp.Or(p.maxInputTokens, defaultMaxInputTokens))
		program.OrDefault(&s.MaxCallTokens, defaultMaxCallTokens)
	}
	program.OrDefault(&s.OutputTokens, account.DefaultOutputTokens)
	program.OrDefault(&s.MaxAttempts, 8)
	program.OrDefault(&s.BurstTime, time.Second)
	if len(s.Deployments) > 0 {
		program.OrDefault(&s.SpillAfter, time.Second)
	}
	program.OrDefault(&s.Timeout, 2*time.Minute)
	program.OrDefault(&s.MaxPause, httpthrottle.DefaultMaxPause)
	program.OrDefault(&s.MaxTokensField, autoTokens)
	program.OrDefault(&s.Input, noInput)
	program.OrDefault(&s.OnStop, holdOnStop)
	program.OrDefault(&s.OnDenied, waitOnDenied)
	return s
}

// drawsLongest reports whether a call draws its longest answer from tokensPerMinute.
func (s *settings) drawsLongest() bool { return s.Profile().Tokens.Draw&profile.Longest != 0 }
