package natsstore

import (
	"os"
	"testing"

	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
)

func TestMain(m *testing.M) {
	servers.BeNATSNode()
	os.Exit(m.Run())
}
