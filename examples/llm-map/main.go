// Command llm-map is a Numaflow mapper that sends each message to the endpoint of a language model and answers with the model's answer,
// as JSON. All pods together stay within the provider's limits on requests per minute, tokens per minute and calls in flight. See README.md
// for its settings and behaviour.
//
//	llm-map              serves, as the user-defined function of a map vertex
//	llm-map --check      prints the settings, without secrets, and their faults
//	llm-map --version    prints the version
package main

import (
	"context"
	"errors"
	"log/slog"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/program"
)

var llmMap = program.Program[settings]{
	Name: "llm-map", Prefix: prefix, Fields: fields, Pool: poolOf, Finish: finish, NoLimit: noLimit, Serve: serve,
	Open: func(ctx context.Context, s *settings, log *slog.Logger) error {
		_, all, err := openTargets(ctx, s, log)
		if err != nil {
			return err
		}
		return all.close()
	},
	Live: append(account.LiveKeys(), "quotas"),
}

func main() { llmMap.Main() }

// serve runs the mapper.
func serve(ctx context.Context, s *settings, log *slog.Logger) error {
	targets, all, err := openTargets(ctx, s, log)
	if err != nil {
		return err
	}
	h, err := newHandler(*s, targets, nil, log)
	if err != nil {
		return errors.Join(err, all.close())
	}
	log.Info("llm-map", "provider", s.Provider, "api", s.API, "model", s.Model, "baseURL", s.BaseURL, "requestsPerMinute", s.RequestsPerMinute,
		"inputTokensPerMinute", s.InputTokensPerMinute, "outputTokensPerMinute", s.OutputTokensPerMinute,
		"tokensPerMinute", s.TokensPerMinute, "inFlight", s.InFlight, "charge", s.Charge, "deployments", s.names(), "pool", s.Pool)
	if s.batches() {
		return errors.Join(newBatchServer(h, s).Start(ctx), all.close())
	}
	var opts []mapsdk.Option
	if s.Socket != "" {
		opts = append(opts, mapsdk.WithSockAddr(s.Socket))
	}
	if s.ServerInfo != "" {
		opts = append(opts, mapsdk.WithServerInfoFilePath(s.ServerInfo))
	}
	err = mapsdk.NewServer(h, opts...).Start(ctx)
	return errors.Join(err, all.close()) // leaves the pools, after the server has stopped
}
