package noloss

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// jobVariable makes this binary a handler process.
const jobVariable = "NUMATHROTTLE_LOSS_JOB"

// exitWithin is how long a process may take to end, once nothing holds it.
const exitWithin = 10 * time.Second

// A job is what a handler process is told.
type job struct {
	Kind string `json:"kind"`
	// Socket, and Notes: the file for the numbers of finished messages. Arrivals is
	// a file for the numbers of messages as they reach the wrapper; empty for none.
	Socket   string `json:"socket"`
	Notes    string `json:"notes"`
	Arrivals string `json:"arrivals"`
	// With is what the wrapper is told beside its defaults: withTags, withOutputs, or nothing.
	With string `json:"with"`
	// Rate is the limit in messages per second, Burst its burst.
	Rate  int `json:"rate"`
	Burst int `json:"burst"`
	// Work is how long the handler is busy with a message.
	Work time.Duration `json:"work"`
	// MaxWait is the longest wait, after which messages are answered as OnDenied says; 0: they wait.
	MaxWait  time.Duration `json:"maxWait"`
	OnDenied string        `json:"onDenied"`
	// Messages is how many a source has.
	Messages int `json:"messages"`
	// Store is where the pool of TestMemoryStaysFlat is kept, and Samples the file for what the process holds; empty: there
	// is no pool. Leaks has the handler keep a part of every message.
	Store   string `json:"store"`
	Samples string `json:"samples"`
	Leaks   bool   `json:"leaks"`
	// Bare leaves the wrapper out: every message waits for its context.
	Bare bool `json:"bare"`
	// Careless puts a wrapper with a time limit around the handler, which answers in
	// its place when the time is over: what the judge must see.
	Careless bool `json:"careless"`
}

// What a wrapper may be told: to draw under a tag of each message, in lanes of their own; and to draw for each output.
const (
	withTags    = "tags"
	withOutputs = "a token for each output"
)

// name tells one job from another.
func (j *job) name() string {
	if j.With == "" {
		return j.Kind
	}
	return j.Kind + " with " + j.With
}

func TestMain(m *testing.M) {
	if text := os.Getenv(jobVariable); text != "" {
		if err := serve(text); err != nil {
			fmt.Fprintln(os.Stderr, "handler process:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "16") // lanes wait more than they compute
	os.Exit(m.Run())
}

// serve is the life of a handler process.
func serve(text string) error {
	log.SetOutput(io.Discard) // numaflow-go logs every panic with its stack
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	limiter, err := j.limiter()
	if err != nil {
		return err
	}
	defer limiter.Close()
	w := &worker{job: j}
	if w.notes, err = openNotes(j.Notes); err != nil {
		return err
	}
	if j.Arrivals != "" {
		if w.arrivals, err = openNotes(j.Arrivals); err != nil {
			return err
		}
	}
	panics := make(chan os.Signal, 1)
	signal.Notify(panics, syscall.SIGUSR1)
	go func() {
		for range panics {
			w.panicIn.Store(largeAnswers + 1)
		}
	}()
	if j.Samples != "" {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGUSR2)
		go tellSamples(j.Samples, asked)
	}
	handler, err := w.handler(limiter)
	if err != nil {
		return err
	}
	ctx, stop := numathrottle.StopContext(context.Background())
	defer stop()
	return dataplane.NewServer(handler, j.Socket, j.Socket+".info").Start(ctx)
}

// limiter is what the handler draws on: a pool, or a limit of its own.
func (j *job) limiter() (*throttle.Throttle, error) {
	if j.Store != "" {
		return openFlat(context.Background(), j.Store, j.Rate, fmt.Sprint("handler-", os.Getpid()))
	}
	return throttle.New(throttle.Limit{Max: j.Rate, Burst: j.Burst})
}

// A noteFile is appended to, a line for each note in one write, so that a note is there
// or not, and outlives the process.
type noteFile struct{ f *os.File }

func openNotes(path string) (*noteFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	return &noteFile{f}, err
}

// note writes one line. Without its notes a process is of no use, and ends.
func (n *noteFile) note(line string) {
	if _, err := n.f.WriteString(line + "\n"); err != nil {
		fmt.Fprintln(os.Stderr, "note:", err)
		os.Exit(4)
	}
}

// readNotes returns the lines of a note file; none if there is no file.
func readNotes(t testing.TB, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	return strings.Fields(string(text))
}

// worker is the state of a handler process.
type worker struct {
	job

	notes, arrivals *noteFile
	// panicIn is positive when the handler is to panic, after so many messages.
	panicIn atomic.Int64

	mu   sync.Mutex
	kept [][]byte // of a handler that leaks
}

// Large answers go before a panic, to keep numaflow-go busy with sending: only then
// does it have a chance to send what is returned after the end of the contexts. Not so
// for map stream: numaflow-go v0.12.0 sends from a goroutine for each message there,
// which gRPC does not allow, and beyond 64 KiB the stream comes to a stand for good.
const (
	largeAnswers = 8
	largeSize    = 1 << 20
)

// work handles a message and notes it.
func (w *worker) work(value []byte) (answer []byte) {
	id := string(value)
	answer = done(id)
	if w.panicIn.Load() > 0 {
		if w.panicIn.Add(-1) == 0 {
			panic("made to panic")
		}
		if w.Kind != kindMapStream {
			answer = append(answer, make([]byte, largeSize)...)
		}
	}
	if w.Work > 0 {
		time.Sleep(w.Work)
	}
	if w.Leaks {
		w.mu.Lock()
		w.kept = append(w.kept, make([]byte, leaked))
		w.mu.Unlock()
	}
	w.notes.note(id)
	return answer
}

// arrived notes when a message reached the wrapper.
func (w *worker) arrived(value []byte) {
	if w.arrivals != nil {
		w.arrivals.note(string(value) + "@" + strconv.FormatInt(time.Now().UnixNano(), 10))
	}
}

// A process is a handler process, seen from the test.
type process struct {
	*testenv.Process

	job job
}

var lives atomic.Int64

// startProcess starts a process that ends with the test, on a socket of its own.
func startProcess(t testing.TB, dir string, j job) *process {
	t.Helper()
	j.Socket = filepath.Join(dir, fmt.Sprint("s", lives.Add(1)))
	text, err := json.Marshal(j)
	require.NoError(t, err)
	return &process{testenv.StartProcess(t, testenv.Self(t, jobVariable+"="+string(text), "NUMATHROTTLE_STATE_DIR="+dir)), j}
}

// signal does nothing if the process has ended.
func (p *process) signal(s syscall.Signal) error {
	if err := p.Cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// end waits until the process is gone, and returns how long that took.
func (p *process) end(within time.Duration) (time.Duration, error) {
	began := time.Now()
	if !p.Ends(within) {
		return within, fmt.Errorf("the process has not ended within %s; its log:\n%s", within, p.Output())
	}
	return time.Since(began), nil
}

// resident is the process's resident memory in bytes; 0 where it cannot be told.
func (p *process) resident(t testing.TB) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.Cmd.Process.Pid))
	if err != nil {
		return 0
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}
