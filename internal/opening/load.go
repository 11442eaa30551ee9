package opening

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// FromEnv is Open with the result of Load; see both. All faults are in one error, including faults of the files that Open reads.
func FromEnv(ctx context.Context) (*throttle.Throttle, error) {
	return fromEnviron(ctx, os.Environ(), os.Getenv(config.FileVariable), nil)
}

// fromEnviron is FromEnv for an environment, the settings file that it names, and a logger; nil: that of the settings.
func fromEnviron(ctx context.Context, environ []string, path string, log *slog.Logger) (*throttle.Throttle, error) {
	c, r := read(environ)
	c.Logger = log
	if path == "" || r.Err() != nil {
		return open(ctx, c, r)
	}
	c.Logger = c.logger()
	started := c
	f := Follow(ctx, Following[*Config]{
		Path: path, Fields: fields, New: func() *Config { return &Config{} }, Pool: func(c *Config) *Config { return c }, Live: liveKeys,
		Load: func(c *Config) (r *config.Reading) {
			*c, r = read(environ)
			return r
		},
		Open: func(ctx context.Context, c *Config) error { _, err := open(ctx, *c, &config.Reading{}); return err },
	}, &started, c.Logger)
	stop := f.Start()
	th, err := open(f.In(ctx), c, r, throttle.OnClose(func(context.Context) error { stop(); return nil }))
	if err != nil {
		stop()
	}
	return th, err
}

// Load is open.Load.
func Load() (Config, error) {
	c, r := read(os.Environ())
	store, wrong := c.check()
	r.Note(wrong...)
	if c.Limit.Max != 0 {
		r.Note(c.checkPool(&store)...)
	}
	if err := r.Err(); err != nil {
		return Config{}, err
	}
	return c.withoutUser(), nil
}

// Fields returns every setting of a Config, for a program of this module that takes them as flags or shows them.
func Fields() []config.Field[*Config] { return slices.Clone(fields) }

// LoadFlags is Load for a program of this module with flags named like the settings. The form of environ is that of os.Environ. The map
// flags holds the given flags by setting key; they override file and environment. LoadFlags also reads the files with credentials, so the
// error has the faults that Open would find. With an error it returns the settings that could be read.
func LoadFlags(environ []string, flags map[string]string) (Config, error) {
	c, r := ReadFlags(environ, flags)
	return c, r.Err()
}

// ReadFlags is LoadFlags for a program that shows where settings came from. A missing pool name is no fault, and neither are quotas without
// a limit: the program inspects pools from outside. CheckNamed finds both.
func ReadFlags(environ []string, flags map[string]string) (Config, *config.Reading) {
	var c Config
	r := config.Read(fields, nil, environ, &c)
	return c.withFlags(flags, fields, r), r
}

// ReadPods is ReadFlags for a program that looks at the pools of others: the file and the variables may be those of any program of this
// project. It takes the settings of the library, and quotas that name limits. Others are no fault, unless one can hardly be anything but a
// misspelt one of the settings for which mine holds.
func ReadPods(
	environ []string, flags map[string]string, mine func(key string) bool, limits []config.QuotaLimit,
) (c Config, of map[string]throttle.Quotas, r *config.Reading) {
	var quotas QuotasOf
	all := slices.Clone(fields)
	for i := range all {
		if all[i].Key == "quotas" {
			all[i] = ManyQuotasField(limits, "", "", func(c *Config) *throttle.Quotas { return &c.Quotas }, func(*Config) *QuotasOf { return &quotas })
		}
	}
	r = config.ReadPart(all, mine, environ, &c)
	return c.withFlags(flags, all, r), quotas.Limits, r
}

// withFlags sets c from flags, and notes its faults.
func (c Config) withFlags(flags map[string]string, fields []config.Field[*Config], r *config.Reading) Config {
	config.ReadFlags(fields, flags, &c, r)
	c = c.withEnvironment()
	c.Pool = cmp.Or(c.Pool, unnamedPool)
	checked := c
	if c.Limit.Max == 0 {
		checked.Quotas = throttle.Quotas{}
	}
	store, wrong := checked.check()
	if c.Limit.Max == 0 {
		wrong = append(wrong, quotaFaults(c.Quotas.Validate(mostTokens, c.Limit.Per))...)
	}
	if len(wrong) == 0 {
		_, wrong = c.loadCredentials(&store)
	}
	r.Note(wrong...)
	if len(wrong) == 0 {
		c = c.withoutUser()
	}
	return c
}

// LoadWith is Load for a program of this module with settings of its own. own describes them, and c holds them and the pool's settings, at
// pool(c). It reads the file and the environment once for both. The result has every fault, and accepts faults that the program finds
// itself. The settings of the limit itself (max, per, burst, ...) are allowed only if own has them, from LimitFields. Otherwise they are a
// fault that says so.
func LoadWith[C any](own []config.Field[C], pool func(C) *Config, c C) *config.Reading {
	has := func(key string) bool {
		return slices.ContainsFunc(own, func(f config.Field[C]) bool { return f.Variable() == config.Variable(key) })
	}
	without := slices.DeleteFunc(slices.Clone(limitKeys), has)
	r := config.Read(ProgramFields(own, pool), without, os.Environ(), c)
	at := pool(c)
	*at = at.withEnvironment()
	store, wrong := at.check()
	r.Note(append(wrong, at.checkPool(&store)...)...)
	if len(wrong) == 0 {
		*at = at.withoutUser()
	}
	return r
}

// ProgramFields returns every setting of a program: own, its own settings, and the settings of its pool.
func ProgramFields[C any](own []config.Field[C], pool func(C) *Config) []config.Field[C] {
	return append(slices.Clone(own), config.Lift(poolFields(), pool)...)
}

// LimitFields returns the settings of a limit under the library's own names, all of them or only the given keys. It is for programs of this
// module that have a limit. They set the Limit of the Config at pool(c), which LoadWith also checks. Without keys, the program also gets
// settings that the library adds later.
func LimitFields[C any](pool func(C) *Config, only ...string) []config.Field[C] {
	return config.Lift(slices.DeleteFunc(slices.Clone(fields), func(f field) bool {
		return !slices.Contains(limitKeys, f.Key) || len(only) > 0 && !slices.Contains(only, f.Key)
	}), pool)
}

// poolFields returns the settings of a pool, without its limit.
func poolFields() []field {
	return slices.DeleteFunc(slices.Clone(fields), func(f field) bool {
		return slices.Contains(limitKeys, f.Key)
	})
}

// withoutUser moves the login before the @ of a valid configuration's store to fields that are never printed.
func (c Config) withoutUser() Config {
	store, _ := config.ParseStore(c.Store)
	switch {
	case !store.HasUser:
		return c
	case store.Kind == config.NATS && store.Password == "":
		c.StoreToken = fromURL(store.Username)
	default:
		c.StoreUsername, c.StorePassword = store.Username, fromURL(store.Password)
	}
	c.Store = store.WithoutUser()
	return c
}

// read returns the configuration, and the faults found while reading it.
func read(environ []string) (Config, *config.Reading) {
	var c Config
	r := config.Read(fields, nil, environ, &c)
	return c.withEnvironment(), r
}
