package envoy

import (
	"context"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
)

// connCredentials are the credentials of a server without encryption, whose calls know their connection.
type connCredentials struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (c connCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return conn, connInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}, conn}, nil
}

// Clone implements credentials.TransportCredentials.
func (c connCredentials) Clone() credentials.TransportCredentials { return c }

// A connInfo is the connection of a call.
type connInfo struct {
	credentials.CommonAuthInfo

	conn net.Conn
}

// AuthType implements credentials.AuthInfo.
func (connInfo) AuthType() string { return "insecure" }

// admit reports the caller as authorised, so that its connection may last.
func admit(ctx context.Context) {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(connInfo); ok {
			listen.AdmitConn(info.conn)
		}
	}
}
