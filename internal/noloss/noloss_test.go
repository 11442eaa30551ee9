package noloss

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

const (
	defaultKills = 50
	// perKill is how many messages there are for each fault.
	perKill = 400
	// atLast is how many come after the last of them: half a second's, so that there are some for the
	// handler when a busy machine is late with the signal to panic.
	atLast = 1000
	// inFlight is how many messages are in flight at once, batchSize how many of them
	// are a batch.
	inFlight, batchSize = 200, 100
)

// jobs are the lanes. The limit makes most messages in flight wait for tokens.
var jobs = []job{
	{Kind: kindMap, Rate: 2000, Burst: 20, Work: time.Millisecond},
	{Kind: kindBatchMap, Rate: 1500, Burst: 20},
	{Kind: kindMapStream, Rate: 2000, Burst: 20, Work: time.Millisecond},
	{Kind: kindTransform, Rate: 2000, Burst: 20, Work: time.Millisecond},
	{Kind: kindSink, Rate: 1500, Burst: 20},
	{Kind: kindSource, Rate: 1500, Burst: 20},
	{Kind: kindSink, With: withTags, Rate: 1500, Burst: 20},
	{Kind: kindMapStream, With: withOutputs, Rate: 2000, Burst: 20, Work: time.Millisecond},
}

func number(t testing.TB, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	require.Positive(t, n, variable)
	return n
}

// figures gathers what the lanes have measured.
type figures struct {
	mu         sync.Mutex
	faults     map[string]uint64
	ends       []time.Duration
	withStream int
	verdict    verdict
	violations []proof.Violation
}

func (f *figures) add(l *lane, v verdict, injected map[string]uint64, replay string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, times := range injected {
		f.faults[name] += times
	}
	f.ends = append(f.ends, l.ends...)
	f.withStream += l.withStream
	f.verdict.Messages += v.Messages
	f.verdict.Resent += v.Resent
	f.verdict.Duplicates += v.Duplicates
	f.verdict.Broken = append(f.verdict.Broken, v.Broken...)
	for _, text := range v.Broken {
		f.violations = append(f.violations, proof.Violation{Promise: "R11", Text: text, Replay: replay})
	}
}

func TestNoMessageIsLostOrAnsweredTwice(t *testing.T) {
	testkit.SkipShort(t, "it starts and kills processes")
	kills, seed := number(t, "NUMATHROTTLE_LOSS_KILLS", defaultKills), number(t, "NUMATHROTTLE_LOSS_SEED", 1)
	replay := fmt.Sprintf("NUMATHROTTLE_LOSS_SEED=%d NUMATHROTTLE_LOSS_KILLS=%d go test -run %s ./internal/noloss", seed, kills, t.Name())
	began := time.Now()
	f := &figures{faults: map[string]uint64{}}
	t.Run("lanes", func(t *testing.T) {
		for i, j := range jobs {
			share := kills / len(jobs)
			if i < kills%len(jobs) {
				share++
			}
			if share == 0 {
				continue
			}
			t.Run(j.name(), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(uint64(seed), uint64(i)))
				f.run(t, j, share*perKill+atLast, drawPlan(share, random), replay)
			})
		}
		if testing.Short() {
			return
		}
		for _, j := range jobs {
			t.Run(j.name()+" forced", func(t *testing.T) {
				t.Parallel()
				j.Rate, j.Burst = 4, 1
				f.run(t, j, 100, plan{{0, forced}}, replay)
			})
		}
	})
	f.record(t, uint64(kills), uint64(seed), time.Since(began))
}

// A plan says after how many answers which fault is injected.
type plan []struct {
	at    int
	fault fault
}

// drawPlan takes each fault in turn, in an order of its own.
func drawPlan(kills int, random *rand.Rand) plan {
	p, order := make(plan, kills), random.Perm(len(faults))
	for i := range p {
		p[i].fault = faults[order[i%len(order)]]
		p[i].at = i*perKill + perKill/5 + random.IntN(perKill*3/5)
	}
	return p
}

// run lets a lane go through its faults, and judges it.
func (f *figures) run(t *testing.T, j job, messages int, p plan, replay string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute+time.Duration(len(p))*5*time.Second)
	defer cancel()
	l := newLane(ctx, t, j, messages, dataplane.WithConcurrency(inFlight))
	var workers sync.WaitGroup
	l.start(&workers)
	injected := map[string]uint64{}
	for _, step := range p {
		require.NoError(t, l.awaitAnswers(step.at), replay)
		require.NoError(t, step.fault.inject(l), "%s: %s\n%s", j.Kind, step.fault.name, replay)
		injected[step.fault.name]++
	}
	v, err := l.finish()
	workers.Wait()
	f.add(l, v, injected, replay)
	require.NoError(t, err, replay)
	require.Empty(t, v.Broken, replay)
	require.Positive(t, v.Resent, "no fault struck a message")
	t.Logf("%d messages, %d faults: 0 lost; %d sent again, %d finished twice", v.Messages, len(p), v.Resent, v.Duplicates)
}

// start lets as many workers offer messages as the kind takes.
func (l *lane) start(workers *sync.WaitGroup) {
	switch l.job.Kind {
	case kindSource:
		workers.Go(l.drain)
	case kindBatchMap, kindSink:
		workers.Go(func() { l.work(batchSize) })
	default:
		for range inFlight {
			workers.Go(func() { l.work(1) })
		}
	}
}

// record hands the figures on.
func (f *figures) record(t testing.TB, kills, seed uint64, took time.Duration) {
	t.Helper()
	p := proof.Pools{
		Subject: fmt.Sprintf("handler processes of %d kinds and settings over their sockets", len(jobs)),
		Runs:    kills, First: seed, Processors: len(jobs), Took: took, Hours: took.Hours(),
		Granted: uint64(f.verdict.Messages), Violations: f.violations,
		Notes: []proof.Note{
			{What: "messages lost, or answered more than once", Figure: strconv.Itoa(len(f.verdict.Broken))},
			{What: "messages sent again after they were seen to fail", Figure: strconv.Itoa(f.verdict.Resent)},
			{What: "of these, handled more than once", Figure: strconv.Itoa(f.verdict.Duplicates)},
			{What: "processes that numaflow-go ended because a stream was closed", Figure: strconv.Itoa(f.withStream)},
		},
	}
	for _, fault := range append(slices.Clone(faults), forced) {
		p.Faults = append(p.Faults, proof.Fault{Name: fault.name, Times: f.faults[fault.name]})
	}
	if len(f.ends) > 0 {
		ends := proof.Summarize(f.ends)
		p.Notes = append(p.Notes, proof.Note{
			What:   "a process ends after SIGTERM or a panic",
			Figure: fmt.Sprintf("within %s (longest of %d)", ends.Longest.Round(time.Millisecond), ends.N),
		})
	}
	proof.Record(t, "noloss", p)
}

// TestJudgeSeesMadeUpAnswers is the proof that the test can fail: a wrapper that
// answers for the handler when its context ends loses messages.
func TestJudgeSeesMadeUpAnswers(t *testing.T) {
	for _, kind := range []string{kindMap, kindSink} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			j := job{Kind: kind, Rate: 200, Burst: 1, Careless: true}
			l := newLane(ctx, t, j, 300, dataplane.WithConcurrency(inFlight))
			var workers sync.WaitGroup
			l.start(&workers)
			v, err := l.finish()
			workers.Wait()
			require.NoError(t, err, "the streams see nothing of it")
			// A handler may have finished just before its context ended: then only the answer is wrong.
			require.Contains(t, strings.Join(v.Broken, "\n"), "lost: acknowledged")
			t.Logf("%d of 300 messages lost", len(v.Broken))
		})
	}
}
