package redisstore_test

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/redisstore"
)

// A store on a server that three sentinels watch.
func ExampleNew() {
	opts := redisstore.ClientOptions("sentinel-0:26379", "sentinel-1:26379", "sentinel-2:26379")
	opts.MasterName = "mymaster"
	client := redis.NewUniversalClient(opts) // connects when it is used
	defer client.Close()

	var store driver.Store = redisstore.New(client, redisstore.WithPrefix("team-a"))
	fmt.Println(opts.ReadTimeout, store.Close())
	// Output: 500ms <nil>
}
