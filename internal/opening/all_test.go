package opening

// The tests open everything that there is to open.
import (
	_ "github.com/numaproj-contrib/numathrottle/pkg/open/nats"
	_ "github.com/numaproj-contrib/numathrottle/pkg/open/redis"
	_ "github.com/numaproj-contrib/numathrottle/pkg/open/telemetry"
)
