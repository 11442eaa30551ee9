package fakellm

// A Limit is a reason to refuse a call.
type Limit string

// The limits. Requests, InputTokens, OutputTokens and Tokens are per minute. Overload is Config.InFlight, and Quota is Config.Quota.
const (
	Requests     Limit = "requests"
	InputTokens  Limit = "input"
	OutputTokens Limit = "output"
	Tokens       Limit = "tokens"
	RequestsDay  Limit = "requests-day"
	TokensDay    Limit = "tokens-day"
	Overload     Limit = "overload"
	Quota        Limit = "quota"
)

// Amounts are what a call is charged, by what is counted.
type Amounts struct {
	Requests int `json:"requests"`
	Input    int `json:"input"`
	Output   int `json:"output"`
	Tokens   int `json:"tokens"`
}

// Of returns the part that counts against a limit.
func (a Amounts) Of(l Limit) int {
	switch l {
	case Requests, RequestsDay:
		return a.Requests
	case InputTokens:
		return a.Input
	case OutputTokens:
		return a.Output
	case Tokens, TokensDay:
		return a.Tokens
	default:
		return 0
	}
}

// plus returns the sum.
func (a Amounts) plus(b Amounts) Amounts {
	return Amounts{a.Requests + b.Requests, a.Input + b.Input, a.Output + b.Output, a.Tokens + b.Tokens}
}

// minus returns the difference in tokens. Requests are never corrected.
func (a Amounts) minus(b Amounts) Amounts {
	return Amounts{Input: a.Input - b.Input, Output: a.Output - b.Output, Tokens: a.Tokens - b.Tokens}
}

// Figures are what a provider knows of a call: at arrival its estimate of the prompt and the longest answer, afterwards the usage.
type figures struct {
	counted int // input without what was read from a cache, where that is free
	whole   int // all input
	output  int
	weight  int // of a token of output
}

// A profile is how a provider counts.
type profile struct {
	// limits are those that it has.
	limits []Limit
	// characters: it estimates a prompt from its characters, not from its real tokens.
	characters bool
	// cachedCounts: what is read from a cache counts like other input.
	cachedCounts bool
	// refusedCount: calls that it refuses count as requests.
	refusedCount bool
	// countsInputs: each input of a call for embeddings counts as a request.
	countsInputs bool
	// stopsAtOutput: an answer ends where the limit on output ends.
	stopsAtOutput bool
	// arrive is the charge at arrival. Requests are added to it.
	arrive func(f figures) Amounts
	// settle is the charge in the end; nil: as at arrival.
	settle func(f figures) Amounts
	// zone is the default of Config.DayZone.
	zone string
	// of one call for embeddings; 0 means any.
	maxInputs, maxInputTokens, maxCallTokens int
}

var (
	allLimits    = []Limit{Requests, InputTokens, OutputTokens, Tokens, RequestsDay, TokensDay}
	tokenLimits  = []Limit{Requests, Tokens, RequestsDay, TokensDay}
	dailyLimits  = []Limit{Requests, InputTokens, OutputTokens, Tokens, RequestsDay}
	mantleLimits = []Limit{InputTokens, OutputTokens}
)

// byUsage charges what was used, with the limits on input, output and both.
func byUsage(f figures) Amounts {
	return Amounts{Input: f.counted, Output: f.output, Tokens: f.whole + f.weight*f.output}
}

// byUsageAtArrival expects the longest answer, but for the limit on output, which counts what is produced.
func byUsageAtArrival(f figures) Amounts {
	return Amounts{Input: f.counted, Tokens: f.whole + f.output}
}

var profiles = map[Provider]profile{
	OpenAI: {
		limits: tokenLimits, characters: true, cachedCounts: true, refusedCount: true,
		arrive:    func(f figures) Amounts { return Amounts{Tokens: max(f.output, f.whole)} },
		maxInputs: 2048, maxInputTokens: 8192, maxCallTokens: 300_000,
	},
	Azure: {
		limits: tokenLimits, characters: true, cachedCounts: true,
		arrive:    func(f figures) Amounts { return Amounts{Tokens: f.whole + f.output} },
		maxInputs: 2048, maxInputTokens: 8192, maxCallTokens: 300_000,
	},
	Anthropic: {limits: dailyLimits, arrive: byUsageAtArrival, settle: byUsage},
	Gemini: {
		limits: dailyLimits, cachedCounts: true, countsInputs: true, zone: "America/Los_Angeles",
		arrive:    func(f figures) Amounts { return Amounts{Input: f.counted, Tokens: f.counted} },
		settle:    func(f figures) Amounts { return Amounts{Input: f.counted, Output: f.output, Tokens: f.counted} },
		maxInputs: 100, maxInputTokens: 2048,
	},
	Bedrock: {
		limits: tokenLimits,
		arrive: func(f figures) Amounts { return Amounts{Tokens: f.counted + f.output} },
		settle: func(f figures) Amounts { return Amounts{Tokens: f.counted + f.weight*f.output} },
	},
	BedrockMantle: {
		limits: mantleLimits, stopsAtOutput: true,
		arrive: func(f figures) Amounts { return Amounts{Input: f.counted + f.output} },
		settle: func(f figures) Amounts { return Amounts{Input: f.counted + f.output, Output: f.output} },
	},
	Groq: {
		limits: allLimits,
		arrive: func(f figures) Amounts { return Amounts{Input: f.counted, Tokens: f.counted + f.output} },
		settle: func(f figures) Amounts {
			return Amounts{Input: f.counted, Output: f.output, Tokens: f.counted + f.weight*f.output}
		},
	},
	SelfHosted: {limits: allLimits, cachedCounts: true, arrive: byUsageAtArrival, settle: byUsage},
}
