package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/whatif"
)

// The flags that say where the recording of whatif comes from.
const (
	fromName       = "from"
	prometheusName = "prometheus"
	queryName      = "query"
	labelName      = "label"
	sinceName      = "since"
	tokenName      = "token-file"
)

// recordedQuery is the default of --query: what tags asked for, in the metrics of this module.
const recordedQuery = "sum by (tag) (rate(numathrottle_quota_used_total[1m]) + rate(numathrottle_quota_throttled_total[1m]))"

func recordingFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: fromName, Usage: "the recorded traffic; - is standard input"},
		&ucli.StringFlag{Name: prometheusName, Usage: "the URL of a Prometheus server that has recorded the traffic"},
		&ucli.StringFlag{
			Name: queryName, DefaultText: recordedQuery, Usage: "PromQL with a series for each tag: calls per second in the minute that ends at a moment",
		},
		&ucli.StringFlag{Name: labelName, DefaultText: "tag", Usage: "the label with the tag"},
		&ucli.StringFlag{Name: sinceName, DefaultText: "24h", Usage: "from how long ago the server's recording is, 1m to 744h"},
		&ucli.StringFlag{Name: tokenName, Usage: "a file with a bearer token for the server"},
	}
}

// A range is the settings of a query.
type queryRange struct{ since time.Duration }

var rangeFields = []config.Field[*queryRange]{
	config.DurationField(sinceName, time.Minute, whatif.MaxMinutes*time.Minute, "", "", func(r *queryRange) *time.Duration { return &r.since }),
}

// recording reads the recorded traffic.
func recording(ctx context.Context, cmd *ucli.Command) (*whatif.Traffic, error) {
	if cmd.IsSet(prometheusName) {
		return asked(ctx, cmd)
	}
	for _, name := range []string{queryName, labelName, sinceName, tokenName} {
		if cmd.IsSet(name) {
			return nil, wrongArguments("--%s is set, allowed: only with --%s", name, prometheusName)
		}
	}
	return readTraffic(cmd.String(fromName))
}

// asked asks a Prometheus server for it.
func asked(ctx context.Context, cmd *ucli.Command) (*whatif.Traffic, error) {
	server, err := url.Parse(cmd.String(prometheusName))
	if err != nil || server.Host == "" || server.Scheme != "http" && server.Scheme != "https" || server.RawQuery != "" {
		return nil, wrongArguments("--%s is no URL of a server, allowed: one such as http://prometheus:9090", prometheusName) // it may hold a password
	}
	r := &queryRange{since: 24 * time.Hour}
	if cmd.IsSet(sinceName) {
		if err := config.Join(config.LoadFlags(rangeFields, map[string]string{sinceName: cmd.String(sinceName)}, r)); err != nil {
			return nil, err
		}
	}
	q := whatif.Query{Server: server, Text: recordedQuery, Label: "tag", End: time.Now()}
	if q.Start = q.End.Add(-r.since); cmd.IsSet(queryName) {
		q.Text = cmd.String(queryName)
	}
	if cmd.IsSet(labelName) {
		q.Label = cmd.String(labelName)
	}
	if path := cmd.String(tokenName); path != "" {
		token, err := os.ReadFile(path)
		if err != nil {
			return nil, wrongArguments("--%s: %w, allowed: a file with a token", tokenName, err)
		}
		q.Token = strings.TrimSpace(string(token))
	}
	return q.Traffic(ctx)
}

// readTraffic reads a file.
func readTraffic(path string) (*whatif.Traffic, error) {
	var in io.Reader = os.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, wrongArguments("--%s: %w, allowed: a CSV file, or - for standard input", fromName, err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	t, err := whatif.ReadTraffic(in)
	if fault := (*fs.PathError)(nil); err != nil && !errors.As(err, &fault) {
		return nil, &kindError{fmt.Errorf("--%s %s: %w", fromName, path, err), errUsage}
	}
	return t, err
}
