package opening

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/drivers"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Store is open.Store.
func Store(_ context.Context, c Config) (driver.Store, error) {
	c = c.withEnvironment()
	c.Store = cmp.Or(c.Store, config.DefaultStore)
	store, faults := c.check()
	if kind := store.Kind; len(faults) == 0 && !kind.IsRedis() && kind != config.NATS {
		faults = append(faults, &config.FieldError{
			Field: "store", Problem: fmt.Sprintf("is %s, which nothing outside of a process can see", config.ShowStore(c.Store)),
			Allowed: strings.Join([]string{"redis://", "rediss://", "redis+sentinel://", "redis+cluster://", "nats://", "tls://"}, ", "),
		})
	}
	creds := &drivers.Credentials{}
	if len(faults) == 0 {
		creds, faults = c.loadCredentials(&store)
	}
	if err := config.Join(faults); err != nil {
		return nil, err
	}
	c.Logger = c.logger()
	return c.backend(&store, creds)
}
