// Package mapserver runs real numaflow-go mapper servers inside tests and
// benchmarks; package sdkserver does so for the other handlers.
package mapserver

import (
	"testing"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
)

// A Server is a running mapper server.
type Server = sdkserver.Server

// Start runs a server for m; see sdkserver.Start.
func Start(tb testing.TB, m mapsdk.Mapper) *Server {
	tb.Helper()
	return sdkserver.Start(tb, m)
}
