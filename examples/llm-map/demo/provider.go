package main

import (
	"context"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
	"github.com/numaproj-contrib/numathrottle/internal/demo/stage"
)

// A provider is a fake one that listens on a free port.
type provider struct {
	*fakellm.Server

	url   string
	close func()
}

func startProvider(ctx context.Context, c fakellm.Config) (*provider, error) {
	s, err := fakellm.New(c)
	if err != nil {
		return nil, err
	}
	url, end, err := stage.Serve(ctx, s)
	return &provider{Server: s, url: url + "/v1", close: end}, err
}
