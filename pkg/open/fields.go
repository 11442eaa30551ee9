package open

import (
	"path/filepath"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

type field = config.Field[Config]

const (
	aWholeNumber = "a whole number, "
	aPath        = "the path of a file"
)

// fields is every setting of a Config, in the order of the reference: keys in the
// file, variables, checks, and the table in docs/configuration.md follow from it.
var fields = append([]field{
	{
		Key: "max", Allowed: aWholeNumber + "0 to 1000000000", Default: "`0`: no limit",
		Doc:   "Tokens per `per`, over the whole pool",
		Value: config.Int(func(c *Config) *int { return &c.Limit.Max }),
		Range: func(c *Config) bool { return limitOK(throttle.Limit{Max: c.Limit.Max}) },
	},
	{
		Key: "per", Allowed: "a duration, `1ms` to `744h`", Default: "`1s`",
		Doc:   "The period of `max`",
		Value: config.Duration(func(c *Config) *time.Duration { return &c.Limit.Per }),
		Range: func(c *Config) bool { return limitOK(throttle.Limit{Per: c.Limit.Per}) },
	},
	{
		Key: "burst", Allowed: aWholeNumber + "0 to 1000000000, with `hard` at most `max`, with `strict` at most 1",
		Default: "what `max` earns in 100 ms, at least 1; see below for `hard`",
		Doc:     "How many tokens the whole pool can save up",
		Value:   config.Int(func(c *Config) *int { return &c.Limit.Burst }),
		Range:   func(c *Config) bool { return limitOK(throttle.Limit{Burst: c.Limit.Burst}) },
	},
	{
		Key: "hard", Allowed: "`true` or `false`", Default: "`false`",
		Doc:   "At most `max` in any window of `per`, over the whole pool, at the price of a lower rate; see below",
		Value: config.Bool(func(c *Config) *bool { return &c.Limit.Hard }),
	},
	{
		Key: "min", Allowed: aWholeNumber + "1 to `max`, with `hard` at least `max` / `burst`", Default: "1 with `rampUpDuration`, else no ramp",
		Doc:   "Where the limit begins to ramp up to `max`, in tokens per `per`; see [limits.md](limits.md)",
		Value: config.Int(func(c *Config) *int { return &c.Limit.Min }),
		Range: func(c *Config) bool { return limitOK(throttle.Limit{Min: c.Limit.Min}) },
	},
	{
		Key: "rampUpDuration", Allowed: "a duration, `1ms` to `744h`", Default: "`1s` with `min`, else no ramp",
		Doc:   "How long it takes at least from `min` to `max`",
		Value: config.Duration(func(c *Config) *time.Duration { return &c.Limit.RampUpDuration }),
		Range: func(c *Config) bool { return limitOK(throttle.Limit{RampUpDuration: c.Limit.RampUpDuration}) },
	},
	{
		Key: "modes", Allowed: "one of `scheduled`, `relaxed`, `onlyIfUsed` and `goBackN`, each with its settings in a mapping: " +
			"`thresholdPercentage` and `rampDownPercentage`, 1 to 100, and `coolDownPeriod`, `1s` to `24h`",
		Default: "`relaxed`",
		Doc:     "When the ramp rises; a mapping such as `{goBackN: {coolDownPeriod: 5s}}`, in the variable too, or the name alone",
		Value:   config.Named(setMode, showMode),
		Range:   func(c *Config) bool { return limitOK(throttle.Limit{Mode: c.Limit.Mode}) },
	},
	{
		Key: "resumedRampUp", Allowed: "`true` or `false`", Default: "`false`",
		Doc:   "A pool that all pods had left goes on where its ramp was, instead of from `min`",
		Value: config.Bool(func(c *Config) *bool { return &c.Limit.ResumedRampUp }),
	},
	{
		Key: "ttl", Allowed: "a duration, `1s` to `24h`", Default: "`180s`",
		Doc:   "The longest silence of a pool after which its ramp still counts",
		Value: config.Duration(func(c *Config) *time.Duration { return &c.Limit.TTL }),
		Range: func(c *Config) bool { return limitOK(throttle.Limit{TTL: c.Limit.TTL}) },
	},
	{
		Key: "adaptive", Allowed: "`true` or `false`", Default: "`false`",
		Doc: "What may be used falls while the called service refuses calls, and rises again to `max`; " +
			"see [limits.md](limits.md#limits-that-follow-the-service)",
		Value: config.Bool(func(c *Config) *bool { return &c.Limit.Adaptive }),
	},
	{
		Key: "adaptiveMin", Allowed: aWholeNumber + "1 to `max`, with `hard` at least `max` / `burst`",
		Default: "a hundredth of `max`, or the least there can be",
		Doc:     "What may be used however many calls are refused, in tokens per `per`; only with `adaptive`",
		Value:   config.Int(func(c *Config) *int { return &c.Limit.AdaptiveMin }),
		Range:   func(c *Config) bool { return limitOK(throttle.Limit{AdaptiveMin: c.Limit.AdaptiveMin}) },
	},
	{
		Key: "strict", Allowed: "`true` or `false`, not with `hard` or a ramp", Default: "`false`",
		Doc:   "At most one token every `per` / `max`, each issued by the store; see [limits.md](limits.md#strict-limits)",
		Value: config.Bool(func(c *Config) *bool { return &c.Limit.Strict }),
	},
	{
		Key: "maxReserved", Allowed: aWholeNumber + "0 to 1000", Default: "`0`",
		Doc:   "How many tokens that the store issues may be reserved ahead; see [limits.md](limits.md#strict-limits)",
		Value: config.Int(func(c *Config) *int { return &c.Limit.MaxReserved }),
		Range: func(c *Config) bool { return limitOK(throttle.Limit{MaxReserved: c.Limit.MaxReserved}) },
	},
	{
		Key: "maxDebt", Allowed: "a duration, `1ms` to `744h`", Default: "three times `per`, at least `10m`",
		Doc: "How much is owed at most after calls have used more than they drew, as the time in which the whole limit earns it; " +
			"see [limits.md](limits.md#debt)",
		Value: config.Duration(func(c *Config) *time.Duration { return &c.Limit.MaxDebt }),
		Range: func(c *Config) bool { return limitOK(throttle.Limit{MaxDebt: c.Limit.MaxDebt}) },
	},
	QuotasField("with `max`, and not with `policy: even` or `static://`", "What tags may use of the limit: tenants, models, keys; see [quotas.md](quotas.md)",
		func(c *Config) *throttle.Quotas { return &c.Quotas }),
	{
		Key: "store", Allowed: "a store URL, see below", Default: "`memory://`",
		Doc:   "Where the pool is kept",
		Value: config.Store(func(c *Config) *string { return &c.Store }),
	},
	{
		Key: "pool", Allowed: "1 to 256 bytes",
		Default: "`<namespace>/<pipeline>/<vertex>` or `<namespace>/<monovertex>` in a Numaflow pod, else `default`; " +
			"on Redis and NATS it must be set there",
		Doc:   "Pods with the same store and pool share the limit",
		Value: config.Text(func(c *Config) *string { return &c.Pool }),
		Range: func(c *Config) bool { return len(c.Pool) <= maxName },
	},
	{
		Key: "id", Allowed: "1 to 256 bytes", Default: "`NUMAFLOW_POD`, else the host name",
		Doc:   "Names this pod; unique among the live ones of the pool",
		Value: config.Text(func(c *Config) *string { return &c.ID }),
		Range: func(c *Config) bool { return len(c.ID) <= maxName },
	},
	{
		Key: "lease", Allowed: "a duration in whole milliseconds, `3s` to `10s`", Default: "`10s`",
		Doc:   "How long a share is good for without the store; the first pod of a pool settles it",
		Value: config.Duration(func(c *Config) *time.Duration { return &c.Lease }),
		Range: func(c *Config) bool {
			return c.Lease == 0 || c.Lease >= consensus.MinLease && c.Lease <= consensus.MaxLease && c.Lease%time.Millisecond == 0
		},
	},
	{
		Key: "policy", Allowed: "`fair` or `even`", Default: "`fair`",
		Doc:   "How the limit is divided: by demand, or the same for every pod",
		Value: config.Choice(func(c *Config) *Policy { return &c.Policy }, PolicyFair, PolicyEven),
	},
	{
		Key: "onStoreLoss", Allowed: "`degrade` or `stop`, with `hard` and `strict` only `stop`", Default: "`degrade`, with `hard` and `strict` `stop`",
		Doc:   "What a pod does when the store has not answered for a lease: go on with its last share, or grant nothing",
		Value: config.Choice(func(c *Config) *StoreLoss { return &c.OnStoreLoss }, StoreLossDegrade, StoreLossStop),
	},
	{
		Key: "failFast", Allowed: "`true` or `false`", Default: "`false`",
		Doc:   "Fail at the start when the store cannot be reached, instead of going on without tokens until it can",
		Value: config.Bool(func(c *Config) *bool { return &c.FailFast }),
	},
	{
		Key: "stateDir", Allowed: "the absolute path of a folder, or `none`", Default: "`/var/run/numaflow` in a Numaflow pod, if it is there, else `none`",
		Doc: "Where a lock proves that the process before this one is dead, whose share is free at once then; " +
			"see [operations.md](operations.md#a-container-that-is-killed)",
		Value: config.Text(func(c *Config) *string { return &c.StateDir }),
		Range: func(c *Config) bool {
			return c.StateDir == "" || c.StateDir == noStateDir || filepath.IsAbs(c.StateDir)
		},
	},
	{
		Key: "healthAddr", Allowed: "`HOST:PORT` or `:PORT`", Default: "none: no server",
		Doc:   "Where to serve `/healthz`, `/readyz`, `/metrics` and `/statusz` over HTTP, without a login; see [metrics.md](metrics.md#health)",
		Value: config.Text(func(c *Config) *string { return &c.HealthAddr }),
		Range: func(c *Config) bool { return c.HealthAddr == "" || isListenAddr(c.HealthAddr) },
	},
	{
		Key: "logLevel", Allowed: "`debug`, `info`, `warn` or `error`", Default: "`info`; of `numathrottle` commands that end, `warn`",
		Doc:   "The least level that is logged. A program with a `Logger` of its own goes by that",
		Value: config.Choice(func(c *Config) *LogLevel { return &c.LogLevel }, LogInfo, LogDebug, LogWarn, LogError),
	},
	{
		Key: "logFormat", Allowed: "`text` or `json`", Default: "`text`",
		Doc:   "How lines are logged, to standard error",
		Value: config.Choice(func(c *Config) *LogFormat { return &c.LogFormat }, LogText, LogJSON),
	},
}, credentialFields...)

// limitKeys are the settings of the limit itself.
var limitKeys = []string{
	"max", "per", "burst", "hard", "min", "rampUpDuration", "modes", "resumedRampUp", "ttl", "adaptive", "adaptiveMin",
	"strict", "maxReserved", "maxDebt", "quotas",
}

// maxName is the length of a pool's name and of an ID that every store takes.
const maxName = 256

// credentialFields is what logs in to a store and checks who it is.
var credentialFields = []field{
	{
		Key: "storeUsername", Allowed: "a text", Default: "none", Doc: "The user of Redis or NATS",
		Value: config.Text(func(c *Config) *string { return &c.StoreUsername }),
	},
	secretField("storePassword", "The password of Redis or NATS",
		func(c *Config) *Secret { return &c.StorePassword }),
	pathField("storePasswordFile", "The password in a file, such as a mounted Secret; reread for every connection",
		func(c *Config) *string { return &c.StorePasswordFile }),
	{
		Key: "storeSentinelUsername", Allowed: "a text", Default: "none", Doc: "The user of Redis Sentinel",
		Value: config.Text(func(c *Config) *string { return &c.StoreSentinelUsername }),
	},
	secretField("storeSentinelPassword", "The password of Redis Sentinel",
		func(c *Config) *Secret { return &c.StoreSentinelPassword }),
	pathField("storeSentinelPasswordFile", "The password of Redis Sentinel in a file",
		func(c *Config) *string { return &c.StoreSentinelPasswordFile }),
	secretField("storeToken", "The token of NATS",
		func(c *Config) *Secret { return &c.StoreToken }),
	pathField("storeTokenFile", "The token of NATS in a file; reread for every connection",
		func(c *Config) *string { return &c.StoreTokenFile }),
	pathField("storeCredsFile", "The credentials of NATS: a user JWT with its seed",
		func(c *Config) *string { return &c.StoreCredsFile }),
	pathField("storeNkeyFile", "The nkey seed of NATS",
		func(c *Config) *string { return &c.StoreNkeyFile }),
	pathField("storeCAFile", "The authorities, in PEM, that the server's certificate is checked against instead of the system's",
		func(c *Config) *string { return &c.StoreCAFile }),
	pathField("storeCertFile", "The client's certificate in PEM, with `storeKeyFile`",
		func(c *Config) *string { return &c.StoreCertFile }),
	pathField("storeKeyFile", "The client's key in PEM, with `storeCertFile`",
		func(c *Config) *string { return &c.StoreKeyFile }),
}

func secretField(key, doc string, at func(*Config) *Secret) field {
	return field{Key: key, Allowed: "a text, never printed", Default: "none", Doc: doc, Value: config.Secret(
		func(c *Config, text string) { *at(c) = NewSecret(text) },
		func(c *Config) string { return at(c).Reveal() },
	)}
}

func pathField(key, doc string, at func(*Config) *string) field {
	return field{Key: key, Allowed: aPath, Default: "none", Doc: doc, Value: config.Text(at)}
}
