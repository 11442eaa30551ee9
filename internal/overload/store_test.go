//go:build numathrottle_faults

package overload

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/natsstore"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/redisstore"
)

// A backend is a real store: the process that serves it, and Stores with connections of their own.
type backend struct {
	pid    int
	stores []driver.Store
}

// perConnection is how many members share a connection, to spare the machine.
const perConnection = 20

func startRedis(t *testing.T, members int) backend {
	srv := testenv.Redis(t)
	b := backend{pid: srv.Pid()}
	for range max(1, members/perConnection) {
		o := redisstore.ClientOptions(srv.Addr())
		o.PoolSize = perConnection
		client := redis.NewUniversalClient(o)
		t.Cleanup(func() { client.Close() })
		b.stores = append(b.stores, redisstore.New(client))
	}
	return b
}

func startNATS(t *testing.T, members int) backend {
	srv := testenv.NATSBinary(t)
	return backend{srv.Pid(), natsStores(t, srv.URL(), members)}
}

func natsStores(t *testing.T, urls string, members int) (stores []driver.Store) {
	t.Helper()
	for range max(1, members/perConnection) {
		nc, err := nats.Connect(urls, natsstore.ConnectOptions()...)
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		s, err := natsstore.New(nc)
		require.NoError(t, err)
		stores = append(stores, s)
	}
	return stores
}

// processorTime is what the process has used.
func (b backend) processorTime(t *testing.T) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(stat), ") ") // after the name
	fields := strings.Fields(rest)
	var ticks int64
	for _, f := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(f, 10, 64)
		require.NoError(t, err)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}
