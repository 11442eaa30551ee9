package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/console"
)

// serveConsole serves a read-only console of a store until end is called. It returns the address of a pool's page.
func serveConsole(ctx context.Context, storeURL, pool string) (address string, end func(), err error) {
	log := slog.New(slog.DiscardHandler)
	store, err := numathrottle.OpenStore(ctx, numathrottle.Config{Store: storeURL, Logger: log})
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	at, ended, failed := make(chan net.Addr, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(ended)
		c := console.Config{Store: store, StoreURL: config.ShowStore(storeURL), Logger: log}
		err := console.Serve(ctx, c, func(addr net.Addr) { at <- addr })
		if err != nil && ctx.Err() == nil { // the usual port is in use
			c.Listen = "127.0.0.1:0"
			err = console.Serve(ctx, c, func(addr net.Addr) { at <- addr })
		}
		failed <- errors.Join(err, store.Close())
	}()
	select {
	case addr := <-at:
		end = func() {
			cancel()
			<-ended
		}
		return fmt.Sprintf("http://%s/#pool=%s", addr, url.QueryEscape(pool)), end, nil
	case err := <-failed:
		cancel()
		return "", nil, err
	}
}
