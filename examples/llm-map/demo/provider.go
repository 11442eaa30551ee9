package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
)

// A provider is a fake one that listens on a free port.
type provider struct {
	*fakellm.Server

	config fakellm.Config
	url    string
	server *http.Server
}

func startProvider(ctx context.Context, c fakellm.Config) (*provider, error) {
	s, err := fakellm.New(c)
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the provider: %w", err)
	}
	p := &provider{Server: s, config: c, url: "http://" + l.Addr().String() + "/v1", server: &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second}}
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

func (p *provider) close() { _ = p.server.Close() }
