package opening

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

type field = config.Field[*Config]

// The bounds of a limit.
const (
	mostTokens = 1_000_000_000
	longest    = 31 * 24 * time.Hour
	longestTTL = 24 * time.Hour
)

// The topics of the reference.
const (
	aboutLimit  = "The limit"
	aboutChange = "Limits that change"
	aboutPool   = "Pool and store"
	aboutLogin  = "Login to the store"
	aboutServer = "Probes and logs"
)

// fields lists every setting of a Config, in the order of the reference. Keys in the file, variables, checks, docs/settings.md and
// docs/numathrottle.schema.json are derived from it.
var fields = slices.Concat(config.About(aboutLimit, limitFields...), config.About(aboutChange, changeFields...),
	config.About(aboutPool, storeFields...), config.About(aboutServer, serverFields...), config.About(aboutLogin, credentialFields...))

var limitFields = []field{
	config.NumberField("max", 0, mostTokens, "`0`: no limit",
		"Tokens per `per`, over the whole pool; of an LLM also `announced`: see [llm.md](llm.md#limits-that-follow-what-is-announced)",
		func(c *Config) *int { return &c.Limit.Max }).In("tokens").Like("600"),
	config.DurationField("per", time.Millisecond, longest, "`1s`", "The period of `max`",
		func(c *Config) *time.Duration { return &c.Limit.Per }).Like("1m"),
	config.NumberField("burst", 0, mostTokens, "what `max` earns in 100 ms, at least 1; [hard limits](configuration.md#a-hard-limit) differ",
		"How many tokens the whole pool can save up", func(c *Config) *int { return &c.Limit.Burst }).In("tokens").Like("10").
		Also(", with `hard` at most `max`, with `strict` at most 1"),
	config.BoolField("hard", "At most `max` in any window of `per`, over the whole pool, "+
		"[at the price of a lower rate](configuration.md#a-hard-limit)", func(c *Config) *bool { return &c.Limit.Hard }),
	config.BoolField("strict", "At most one token every `per` / `max`, each issued by the store; see [limits.md](limits.md#strict-limits)",
		func(c *Config) *bool { return &c.Limit.Strict }).Also(", not with `hard` or a ramp"),
	config.NumberField("maxReserved", 0, 1000, "`0`", "How many tokens that the store issues may be reserved ahead; with `strict`",
		func(c *Config) *int { return &c.Limit.MaxReserved }).In("tokens").Like("10"),
	config.DurationField("maxDebt", time.Millisecond, longest, "three times `per`, at least `10m`",
		"The largest debt of calls that use more than they drew, as the time in which the whole limit earns it; "+
			"see [limits.md](limits.md#debt)", func(c *Config) *time.Duration { return &c.Limit.MaxDebt }).Like("30m"),
	QuotasField("with `max`, and not with `policy: even` or `static://`", "What tags may use of the limit: tenants, models, keys; see [quotas.md](quotas.md)",
		func(c *Config) *throttle.Quotas { return &c.Quotas }),
}

// changeFields are the settings of ramps, and of limits that follow the service.
var changeFields = []field{
	config.NumberField("min", 1, mostTokens, "1 with `rampUpDuration`, else no ramp",
		"Where the limit begins to ramp up to `max`, in tokens per `per`; see [limits.md](limits.md)",
		func(c *Config) *int { return &c.Limit.Min }).In("tokens").Like("60").Only("1 to `max`, with `hard` at least `max` / `burst`"),
	config.DurationField("rampUpDuration", time.Millisecond, longest, "`1s` with `min`, else no ramp", "How long it takes at least from `min` to `max`",
		func(c *Config) *time.Duration { return &c.Limit.RampUpDuration }).Like("10m"),
	{
		Key: "modes", Allowed: allowedModes, Default: "`relaxed`",
		Doc:     "When the ramp rises; a mapping, in the variable too, or the name alone",
		Value:   config.Block(readMode, showMode),
		Range:   func(c *Config) bool { return limitOK(throttle.Limit{Mode: c.Limit.Mode}) },
		Example: "{goBackN: {coolDownPeriod: 5s}}", Form: modesForm(),
	},
	config.BoolField("resumedRampUp", "A pool that all pods had left continues its ramp instead of starting from `min`",
		func(c *Config) *bool { return &c.Limit.ResumedRampUp }),
	config.DurationField("ttl", time.Second, longestTTL, "`180s`", "The longest silence of a pool after which its ramp still counts",
		func(c *Config) *time.Duration { return &c.Limit.TTL }).Like("10m"),
	config.BoolField("adaptive", "The limit falls while the called service refuses calls, and rises again to `max`; "+
		"see [limits.md](limits.md#limits-that-follow-the-service)", func(c *Config) *bool { return &c.Limit.Adaptive }),
	config.NumberField("adaptiveMin", 1, mostTokens, "a hundredth of `max`, or the least there can be",
		"The least that an `adaptive` limit falls to, in tokens per `per`",
		func(c *Config) *int { return &c.Limit.AdaptiveMin }).In("tokens").Like("60").Only("1 to `max`, with `hard` at least `max` / `burst`"),
}

var storeFields = []field{
	{
		Key: "store", Allowed: "a store URL", Default: "`memory://`",
		Doc:     "Where the pool is kept",
		Value:   config.Store(func(c *Config) *string { return &c.Store }),
		Example: "nats://isbsvc-default-js-svc:4222", Form: config.StoreForm(),
	},
	config.TextField("pool", "1 to 256 bytes",
		"`<namespace>/<pipeline>/<vertex>` or `<namespace>/<monovertex>` in a Numaflow pod, else `default`; "+
			"on Redis and NATS it must be set there",
		"Pods with the same store and pool share the limit", func(c *Config) *string { return &c.Pool }).
		UpTo(maxName).Like("orders/geocoder"),
	config.TextField("id", "1 to 256 bytes", "`NUMAFLOW_POD`, else the host name", "Names this pod; unique among the live ones of the pool",
		func(c *Config) *string { return &c.ID }).UpTo(maxName).Like("geocoder-0"),
	leaseField(),
	config.ChoiceField("policy", "How the limit is divided: by demand, or the same for every pod",
		func(c *Config) *Policy { return &c.Policy }, PolicyFair, PolicyEven),
	func() field {
		f := config.ChoiceField("onStoreLoss",
			"Without an answer of the store for a lease: go on with the last share, or grant nothing",
			func(c *Config) *StoreLoss { return &c.OnStoreLoss }, StoreLossDegrade, StoreLossStop)
		f.Default = "`degrade`, with `hard` and `strict` `stop`"
		return f.Also(", with `hard` and `strict` only `stop`")
	}(),
	config.BoolField("failFast", "Fail at the start without the store, instead of waiting for it without tokens",
		func(c *Config) *bool { return &c.FailFast }),
	{
		Key: "stateDir", Allowed: "the absolute path of a folder, or `none`", Default: "`/var/run/numaflow` in a Numaflow pod, if it is there, else `none`",
		Doc: "Folder of a lock that frees the share of a process that died before this one; " +
			"see [operations.md](operations.md#a-container-that-is-killed)",
		Value: config.Path(func(c *Config) *string { return &c.StateDir }),
		Range: func(c *Config) bool {
			return c.StateDir == "" || c.StateDir == noStateDir || filepath.IsAbs(c.StateDir)
		},
		Example: "/var/lib/numathrottle", Form: config.Schema{"type": "string", "pattern": "^(/.*|none)$", "maxLength": 4096},
	},
}

func leaseField() field {
	f := config.DurationField("lease", driver.MinLease, driver.MaxLease, "`10s`",
		"How long a share is good for without the store; the first pod of a pool settles it", func(c *Config) *time.Duration { return &c.Lease }).Like("5s")
	f.Allowed = "a duration in whole milliseconds, `3s` to `10s`"
	f.Range = func(c *Config) bool { return c.Lease%time.Millisecond == 0 }
	return f
}

var serverFields = []field{
	{
		Key: "healthAddr", Allowed: "`HOST:PORT` or `:PORT`", Default: "none: no server",
		Doc:     "Where to serve `/healthz`, `/readyz`, `/metrics` and `/statusz` over HTTP, without a login; see [metrics.md](metrics.md#health)",
		Value:   config.Text(func(c *Config) *string { return &c.HealthAddr }),
		Range:   func(c *Config) bool { return c.HealthAddr == "" || isListenAddr(c.HealthAddr) },
		Example: ":8085", Form: config.Schema{"type": "string", "pattern": ":(0|[1-9][0-9]{0,4})$"},
	},
	config.NumberField("podConcurrency", 0, 1_000_000, "`0`: not reported", "How many messages one pod works on at once: `limits.concurrency` of its vertex. "+
		"With it the pod reports how many pods the limit needs; see [autoscaling.md](autoscaling.md#any-autoscaler)",
		func(c *Config) *int { return &c.PodConcurrency }).In("messages").Like("200"),
	func() field {
		f := config.ChoiceField("logLevel", "The lowest level that is logged, unless the program has a `Logger` of its own",
			func(c *Config) *LogLevel { return &c.LogLevel }, LogInfo, LogDebug, LogWarn, LogError)
		f.Allowed, f.Default = "`debug`, `info`, `warn` or `error`", "`info`; of `numathrottle` commands that end, `warn`"
		return f.Like("warn")
	}(),
	config.ChoiceField("logFormat", "How lines are logged, to standard error", func(c *Config) *LogFormat { return &c.LogFormat }, LogText, LogJSON),
}

// limitKeys are the settings of the limit itself.
var limitKeys = []string{
	"max", "per", "burst", "hard", "min", "rampUpDuration", "modes", "resumedRampUp", "ttl", "adaptive", "adaptiveMin",
	"strict", "maxReserved", "maxDebt", "quotas",
}

// maxName is the longest pool name and ID that every store accepts.
const maxName = 256

// credentialFields are the settings for logging in to a store and checking its identity.
var credentialFields = []field{
	config.TextField("storeUsername", "a text", "none", "The user of Redis or NATS", func(c *Config) *string { return &c.StoreUsername }).
		Like("numathrottle"),
	SecretField("storePassword", "The password of Redis or NATS", func(c *Config) *Secret { return &c.StorePassword }),
	config.PathField("storePasswordFile", "none", "The password in a file, such as a mounted Secret; reread for every connection",
		func(c *Config) *string { return &c.StorePasswordFile }),
	config.TextField("storeSentinelUsername", "a text", "none", "The user of Redis Sentinel",
		func(c *Config) *string { return &c.StoreSentinelUsername }).Like("sentinel"),
	SecretField("storeSentinelPassword", "The password of Redis Sentinel", func(c *Config) *Secret { return &c.StoreSentinelPassword }),
	config.PathField("storeSentinelPasswordFile", "none", "The password of Redis Sentinel in a file; read at the start",
		func(c *Config) *string { return &c.StoreSentinelPasswordFile }),
	SecretField("storeToken", "The token of NATS", func(c *Config) *Secret { return &c.StoreToken }),
	config.PathField("storeTokenFile", "none", "The token of NATS in a file; reread for every connection",
		func(c *Config) *string { return &c.StoreTokenFile }),
	config.PathField("storeCredsFile", "none", "The credentials of NATS: a user JWT with its seed; reread for every connection",
		func(c *Config) *string { return &c.StoreCredsFile }),
	config.PathField("storeNkeyFile", "none", "The nkey seed of NATS; reread for every connection",
		func(c *Config) *string { return &c.StoreNkeyFile }),
	config.PathField("storeCAFile", "none", "The authorities of the server's certificate, in PEM, instead of the system's; reread for every connection",
		func(c *Config) *string { return &c.StoreCAFile }),
	config.PathField("storeCertFile", "none", "The client's certificate in PEM, with `storeKeyFile`; both are reread for every connection",
		func(c *Config) *string { return &c.StoreCertFile }),
	config.PathField("storeKeyFile", "none", "The client's key in PEM, with `storeCertFile`",
		func(c *Config) *string { return &c.StoreKeyFile }),
}

// SecretField is a setting that is never printed, for a program of this module.
func SecretField[C any](key, doc string, at func(C) *Secret) config.Field[C] {
	return config.Field[C]{Key: key, Allowed: "a text, never printed", Default: "none", Doc: doc, Value: config.Secret(
		func(c C, text string) { *at(c) = NewSecret(text) },
		func(c C) string { return at(c).Reveal() },
	)}
}
