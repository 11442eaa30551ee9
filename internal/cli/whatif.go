package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/whatif"
)

// The flags of whatif.
const (
	beforeName   = "before"
	podsName     = "pods"
	maxWaitName  = "max-wait"
	arrivalsName = "arrivals"
	drawsName    = "draws"
)

// whatifPage is the default of --output.
const whatifPage = "whatif.html"

func (c *CLI) whatifCommand() *ucli.Command {
	return &ucli.Command{
		Name:  "whatif",
		Usage: "replay recorded traffic through a configuration: use, waits, refusals and budgets, as a table and a page",
		Description: "--from is a CSV file with the columns time,tag,rate,cost: a line for each minute and tag, with calls per second and tokens per call; " +
			"tag and cost may be missing. --prometheus asks a server for the same. The limiter, its quotas and its pool run as in the pods, on a virtual " +
			"clock. Settings come from the file --config alone, not from variables. No store is asked.",
		Flags: append(recordingFlags(),
			&ucli.StringFlag{Name: beforeName, Usage: "a YAML file with settings to compare with; without it, that's the traffic as recorded"},
			&ucli.StringFlag{Name: outputName, Aliases: []string{"o"}, Usage: "where the page goes", DefaultText: whatifPage},
			&ucli.StringFlag{Name: podsName, Usage: "how many pods share the limit, 1 to 100", DefaultText: "1"},
			&ucli.StringFlag{Name: maxWaitName, Usage: "how long a call may wait, 1ms to 24h", DefaultText: "as long as it takes"},
			&ucli.StringFlag{Name: arrivalsName, Usage: "how the calls of a minute come: even or random", DefaultText: string(arriveEven)},
			&ucli.StringFlag{
				Name: drawsName, Usage: "of more calls, several of a tag draw together: 1000 to 100000000", DefaultText: fmt.Sprint(whatif.DefaultDraws),
			},
		),
		ArgValidator: noArguments,
		Action:       c.whatif,
	}
}

type arrivals string

const (
	arriveEven   arrivals = "even"
	arriveRandom arrivals = "random"
)

// A replaying is the settings of one run of whatif.
type replaying struct {
	pods, draws int
	maxWait     time.Duration
	arrivals    arrivals
}

var replayFields = []config.Field[*replaying]{
	config.NumberField(podsName, 1, whatif.MaxPods, "", "", func(r *replaying) *int { return &r.pods }),
	config.NumberField(drawsName, 1000, 100_000_000, "", "", func(r *replaying) *int { return &r.draws }),
	config.DurationField("maxWait", time.Millisecond, 24*time.Hour, "", "", func(r *replaying) *time.Duration { return &r.maxWait }),
	config.ChoiceField(arrivalsName, "", func(r *replaying) *arrivals { return &r.arrivals }, arriveEven, arriveRandom),
}

// read reads the flags, and returns how to replay.
func (r *replaying) read(cmd *ucli.Command) (whatif.Options, error) {
	flags := map[string]string{}
	for name, key := range map[string]string{podsName: podsName, drawsName: drawsName, maxWaitName: "maxWait", arrivalsName: arrivalsName} {
		if cmd.IsSet(name) {
			flags[key] = cmd.String(name)
		}
	}
	r.pods, r.draws = 1, whatif.DefaultDraws
	err := config.Join(config.LoadFlags(replayFields, flags, r))
	for name, given := range map[string]int{podsName: r.pods, drawsName: r.draws} { // 0 is no value of a setting, which may be left out
		if given == 0 && err == nil {
			err = wrongArguments("%s is 0 (--%s), allowed: 1 or more", name, name)
		}
	}
	return whatif.Options{
		Pods: r.pods, MaxDraws: int64(r.draws), MaxWait: r.maxWait, Random: r.arrivals == arriveRandom, Seed: 1,
	}, err
}

// whatif replays a recording.
func (c *CLI) whatif(ctx context.Context, cmd *ucli.Command) error {
	if cmd.IsSet(fromName) == cmd.IsSet(prometheusName) || !cmd.IsSet(configName) {
		return wrongArguments("%s: --%s and either --%s or --%s are needed, allowed: a YAML file with settings, and a CSV file or a Prometheus server "+
			"with recorded traffic", cmd.FullName(), configName, fromName, prometheusName)
	}
	o, err := new(replaying).read(cmd)
	if err != nil {
		return err
	}
	report := &whatif.Report{Options: o, BeforeName: "the recording, without a limit", AfterName: filepath.Base(cmd.String(configName))}
	after, err := c.settings(cmd.String(configName))
	if err != nil {
		return err
	}
	var before *opening.Config
	if cmd.IsSet(beforeName) {
		report.BeforeName = filepath.Base(cmd.String(beforeName))
		if before, err = c.settings(cmd.String(beforeName)); err != nil {
			return err
		}
	}
	if report.Traffic, err = recording(ctx, cmd); err != nil {
		return err
	}
	if err := replayBoth(ctx, report, before, after); err != nil {
		return err
	}
	if err := report.WriteTable(c.Out); err != nil {
		return err
	}
	path := cmp.Or(cmd.String(outputName), whatifPage)
	if err := writePage(path, report); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "\nThe page with plots: %s\n", path)
	return err
}

// settings returns the settings of a file alone.
func (c *CLI) settings(path string) (*opening.Config, error) {
	conf, r := opening.ReadFlags([]string{config.FileVariable + "=" + path}, nil)
	if err := r.Err(); err != nil {
		return nil, &kindError{err, errUsage}
	}
	conf.Logger = slog.New(slog.DiscardHandler)
	return &conf, nil
}

// replayBoth fills in the results of a report, both at once.
func replayBoth(ctx context.Context, report *whatif.Report, before, after *opening.Config) error {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // most of the memory is short-lived
	var failed [2]error
	var both sync.WaitGroup
	if before == nil {
		report.Before = whatif.Recorded(report.Traffic, after)
	} else {
		both.Go(func() { report.Before, failed[0] = whatif.Replay(ctx, report.Traffic, before, report.Options) })
	}
	report.After, failed[1] = whatif.Replay(ctx, report.Traffic, after, report.Options)
	both.Wait()
	return errors.Join(failed[:]...)
}

// writePage writes the page. A file that was there before stays until the new one is complete.
func writePage(path string, report *whatif.Report) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".whatif-*")
	if err != nil {
		return fmt.Errorf("--%s: %w", outputName, err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // it is gone unless something failed
	err = report.WritePage(f)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("--%s: %w", outputName, err)
	}
	return nil
}
