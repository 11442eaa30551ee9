package envoy

import (
	"context"
	"net"
	"sync/atomic"

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
	return conn, &connInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}, conn: conn}, nil
}

// Clone implements credentials.TransportCredentials.
func (c connCredentials) Clone() credentials.TransportCredentials { return c }

// maxRefused is how many calls without the token a connection may make in a row.
const maxRefused = 100

// A connInfo is the connection of a call. A nil one does nothing.
type connInfo struct {
	credentials.CommonAuthInfo

	conn    net.Conn
	refused atomic.Int32 // calls since the last admitted one
}

// AuthType implements credentials.AuthInfo.
func (*connInfo) AuthType() string { return "insecure" }

// connOf returns the connection of a call; nil if it is not known.
func connOf(ctx context.Context) *connInfo {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	c, _ := p.AuthInfo.(*connInfo)
	return c
}

// admit reports the caller as authorised, so that its connection may last.
func (c *connInfo) admit() {
	if c != nil {
		c.refused.Store(0)
		listen.AdmitConn(c.conn)
	}
}

// refuse counts a call without the token, and closes the connection after too many in a row.
func (c *connInfo) refuse() {
	if c != nil && c.refused.Add(1) > maxRefused {
		c.close()
	}
}

func (c *connInfo) close() {
	if c != nil {
		_ = c.conn.Close() // its reader reports that
	}
}
