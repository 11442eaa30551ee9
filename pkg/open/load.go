package open

import (
	"cmp"
	"context"
	"os"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// FromEnv is Open with what Load returns; see both. All faults are in one error,
// those of the files that Open reads too.
func FromEnv(ctx context.Context) (*throttle.Throttle, error) {
	c, r := read(os.Environ())
	return open(ctx, c, r)
}

// Load reads the configuration from the YAML file that NUMATHROTTLE_CONFIG names,
// if it does, and from the variables NUMATHROTTLE_*, which win over the file. The
// pool and the ID are filled in from Numaflow's variables when they are not
// given, and a user and password in the store's URL are moved to the fields for
// them. What is not set keeps its zero value.
//
// The error has a line for every fault: a value that is not allowed, an unknown
// name, a name given twice. It shows no secret. Variables that Kubernetes sets
// for a Service whose name begins with "numathrottle" are none of the settings.
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

// Fields describes every setting of a Config, for a program of this module that takes them as
// flags or shows them.
func Fields() []config.Field[Config] { return slices.Clone(fields) }

// LoadFlags is Load for a program of this module whose flags have the names of the settings. environ
// has the form of os.Environ; flags holds the flags that were given, by the settings' keys: they win over
// file and environment. The files that hold credentials are read, too, so that the error has what Open
// would find. With an error LoadFlags returns what could be read.
func LoadFlags(environ []string, flags map[string]string) (Config, error) {
	c, r := ReadFlags(environ, flags)
	return c, r.Err()
}

// ReadFlags is LoadFlags for a program that tells where the settings came from. A pool that nobody has named is no fault: the program looks
// at pools from outside.
func ReadFlags(environ []string, flags map[string]string) (Config, *config.Reading) {
	var c Config
	r := config.Read(fields, nil, environ, &c)
	config.ReadFlags(fields, flags, &c, r)
	c = c.withEnvironment()
	c.Pool = cmp.Or(c.Pool, unnamedPool)
	store, wrong := c.check()
	if len(wrong) == 0 {
		_, wrong = c.loadCredentials(&store)
	}
	r.Note(wrong...)
	if len(wrong) == 0 {
		c = c.withoutUser()
	}
	return c, r
}

// LoadWith is Load for a program of this module that has settings of its own: own
// describes them, and c holds them and the pool's, which is at pool(c). The file and the
// environment are read once for both. The result has every fault, and takes those that the program finds itself. The settings of the
// limit itself (max, per, burst, ...) are those of LimitFields, for programs that have them among their own; to others they are
// a fault that says so.
func LoadWith[C any](own []config.Field[C], pool func(*C) *Config, c *C) *config.Reading {
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

// ProgramFields returns every setting of a program whose own settings are own: these, and those of its pool.
func ProgramFields[C any](own []config.Field[C], pool func(*C) *Config) []config.Field[C] {
	return append(slices.Clone(own), config.Lift(poolFields(), pool)...)
}

// LimitFields returns the settings of a limit by the library's own names, for a program of this module that has one: all of them, or
// those with the given keys. They set the Limit of the Config at pool(c), which LoadWith checks with it. A program that takes
// them takes each that the library will have in time.
func LimitFields[C any](pool func(*C) *Config, only ...string) []config.Field[C] {
	return config.Lift(slices.DeleteFunc(slices.Clone(fields), func(f field) bool {
		return !slices.Contains(limitKeys, f.Key) || len(only) > 0 && !slices.Contains(only, f.Key)
	}), pool)
}

// poolFields is what describes a pool, without its limit.
func poolFields() []field {
	return slices.DeleteFunc(slices.Clone(fields), func(f field) bool {
		return slices.Contains(limitKeys, f.Key)
	})
}

// withoutUser moves what stands before the @ of a valid configuration's store to
// where nothing prints it.
func (c Config) withoutUser() Config {
	store, _ := config.ParseStore(c.Store)
	switch {
	case !store.HasUser:
		return c
	case store.Kind == config.NATS && store.Password == "":
		c.StoreToken = NewSecret(store.Username)
	default:
		c.StoreUsername, c.StorePassword = store.Username, NewSecret(store.Password)
	}
	c.Store, c.loginInURL = store.WithoutUser(), true
	return c
}

// read returns what is configured, and what is wrong with how it is.
func read(environ []string) (Config, *config.Reading) {
	var c Config
	r := config.Read(fields, nil, environ, &c)
	return c.withEnvironment(), r
}
