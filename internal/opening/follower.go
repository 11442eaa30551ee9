package opening

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
)

// lookEvery is how often a settings file is read. A new content counts when it is read twice: somebody may be writing it.
const lookEvery = 3 * time.Second

// logLevelKey is the setting of the log level, which every program takes from a changed file.
const logLevelKey = "logLevel"

// liveKeys are the settings of one limit that count without a restart.
var liveKeys = []string{"max", "per", "quotas", logLevelKey}

// A Follower follows the settings file of a process. What its limits can take over without a restart goes through the documents of their
// pools to all processes; the names of other changed settings are logged. A file that cannot be used changes nothing, and is logged once.
// It is safe for concurrent use. A nil Follower follows nothing.
type Follower struct {
	path  string
	read  func() fileSettings
	start fileSettings

	mu      sync.Mutex
	log     *slog.Logger
	own     map[string]protocol.OwnFile // by pool
	pools   map[string]bool             // whose documents tell this process what counts
	prices  map[string]func(json.RawMessage)
	priced  map[string]string // the prices in force
	last    fileSettings      // that could be used
	taken   string            // the content of the file when it was last taken, as a hash
	seen    string            // that read last
	fault   string
	restart []string
}

// fileSettings are the settings of a process at one moment, as its file and its environment have them.
type fileSettings struct {
	fault   error
	hash    string
	changed []string // settings in force that differ from those at the start
	level   LogLevel
	plan    plan
}

// A Following says how a program reads its settings again.
type Following[C any] struct {
	// Path is the settings file. An empty one is not followed.
	Path string
	// Fields are all settings of the program, and New makes a C with none of them.
	Fields []config.Field[C]
	New    func() C
	// Load sets c from the file and its environment, as at the start. The result has all faults.
	Load func(c C) *config.Reading
	// Pool has the settings of the pools.
	Pool func(c C) *Config
	// Open opens and closes the limits of c, in a ctx that is Planning.
	Open func(ctx context.Context, c C) error
	// Live are the program's own settings that count without a restart, beside the log level: they decide what Open opens, or the prices.
	Live []string
}

// Follow begins to follow the settings file of a program of this module that has just read c from it. Run it for as long as the limits are
// open.
func Follow[C any](ctx context.Context, f Following[C], c C, log *slog.Logger) *Follower {
	if f.Path == "" {
		return nil
	}
	load := func(is C) (s fileSettings) {
		alone := f.New()
		config.Read(f.Fields, nil, []string{config.FileVariable + "=" + f.Path}, alone) // faults are those of Load
		s.hash = hashOf(config.Show(f.Fields, alone))
		s.level = f.Pool(is).LogLevel
		pool := *f.Pool(is)
		f.Pool(is).HealthAddr, f.Pool(is).Logger = "", slog.New(slog.DiscardHandler)
		s.plan, s.fault = planBy(ctx, func(ctx context.Context) error { return f.Open(ctx, is) })
		*f.Pool(is) = pool
		return s
	}
	follower := &Follower{
		path: f.Path, log: log, own: map[string]protocol.OwnFile{}, pools: map[string]bool{},
		prices: map[string]func(json.RawMessage){}, priced: map[string]string{},
		taken: contentOf(f.Path),
	}
	follower.read = func() fileSettings {
		now := f.New()
		if _, err := config.ReadFile(f.Path); err != nil { // an empty one was cut: at the start it would be no limit
			return fileSettings{fault: &config.FieldError{Field: config.FileVariable, Problem: "cannot be read: " + err.Error()}}
		}
		if err := f.Load(now).Err(); err != nil {
			return fileSettings{fault: err}
		}
		s := load(now)
		s.changed = slices.DeleteFunc(config.Changed(f.Fields, c, now), func(key string) bool {
			return key != logLevelKey && slices.Contains(f.Live, key) && s.fault == nil && follower.isLive(&s)
		})
		return s
	}
	follower.start = load(c)
	follower.last, follower.seen = follower.start, follower.taken
	for pool, is := range follower.start.plan {
		file, _ := is.fileOf(&is, follower.file(&follower.start))
		follower.own[pool] = protocol.OwnFile{File: file}
	}
	return follower
}

// isLive reports whether the pools of a plan are those of the start: a limit that is new, or no longer there, needs a restart.
func (f *Follower) isLive(s *fileSettings) bool {
	for pool := range s.plan {
		if _, there := f.start.plan[pool]; !there {
			return false
		}
	}
	return len(s.plan) == len(f.start.plan)
}

// file returns a File without what only one limiter has.
func (f *Follower) file(s *fileSettings) protocol.File {
	name := filepath.Base(f.path)
	if (&protocol.File{Name: name}).Validate() != nil {
		name = "settings"
	}
	return protocol.File{Name: name, Hash: s.hash, LogLevel: s.level}
}

// hashOf returns the hash of settings without secrets.
func hashOf(settings []config.Setting) string {
	h := sha256.New()
	for _, s := range settings {
		fmt.Fprintf(h, "%s: %q\n", s.Key, s.Value)
	}
	return fmt.Sprintf("%x", h.Sum(nil))[:8]
}

// contentOf returns a hash of the content of a file, or why it cannot be read. It stays in this process.
func contentOf(path string) string {
	content, err := config.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", sha256.Sum256(content))
}

type followerKey struct{}

// In returns a context with which Open makes limiters that go by the file.
func (f *Follower) In(ctx context.Context) context.Context {
	if f == nil {
		return ctx
	}
	return context.WithValue(ctx, followerKey{}, f)
}

func followerIn(ctx context.Context) *Follower {
	f, _ := ctx.Value(followerKey{}).(*Follower)
	return f
}

// Run follows the file until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	if f == nil {
		return
	}
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			f.look()
		}
	}
}

// Start is Run in the background, until stop is called.
func (f *Follower) Start() (stop func()) {
	if f == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx)
	}()
	return func() { cancel(); <-done }
}

// look reads the file, and takes a content that is new and complete.
func (f *Follower) look() {
	now := contentOf(f.path)
	f.mu.Lock()
	isNew := now != f.taken && now == f.seen
	if f.seen = now; isNew {
		f.taken = now
	}
	f.mu.Unlock()
	if isNew {
		s := f.read()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.take(&s)
	}
}

// take puts new settings in force, or says what is wrong with them. f.mu is held.
func (f *Follower) take(s *fileSettings) {
	file := f.file(s)
	if s.fault != nil {
		f.fault = firstFault(s.fault)
		f.log.Error("the settings file cannot be used: what was in force before stays", "file", f.path, "error", s.fault)
		for pool, own := range f.own {
			own.Fault = f.fault
			f.own[pool] = own
		}
		return
	}
	if f.fault != "" {
		f.log.Info("the settings file can be used again", "file", f.path)
	}
	before := f.last.hash
	f.fault, f.last = "", *s
	restart := s.changed
	if _, ok := f.log.Handler().(*levelled); ok {
		restart = without(restart, logLevelKey)
	}
	for pool, start := range f.start.plan {
		now, there := s.plan[pool]
		if !there {
			now = start
		}
		of, lasting := start.fileOf(&now, file)
		restart = append(restart, lasting...)
		own := protocol.OwnFile{File: of, Changes: f.own[pool].Changes}
		if s.hash != before {
			own.Changes++
		}
		f.own[pool] = own
	}
	slices.Sort(restart)
	restart = slices.Compact(restart)
	for pool, own := range f.own {
		own.Restart = restart
		f.own[pool] = own
	}
	if s.hash != before {
		f.log.Info("the settings file has changed", "file", file.String(), "was", f.path+"@"+before)
	}
	if len(restart) > 0 && !slices.Equal(restart, f.restart) {
		f.log.Warn("restart needed: these settings of the file count only after one", "settings", strings.Join(restart, ", "), "file", file.String())
	}
	if f.restart = restart; len(f.pools) == 0 {
		f.setLevel(s.level) // no pool says what counts
	}
	for pool := range f.prices {
		if !f.pools[pool] {
			f.setPrices(pool, f.own[pool].Prices)
		}
	}
}

// firstFault returns the first fault of an error, for a status.
func firstFault(err error) string {
	const most = 300
	if all := config.Split(err); len(all) > 1 {
		err = fmt.Errorf("%w, and %d more", all[0], len(all)-1)
	}
	if text := err.Error(); len(text) > most {
		err = errors.New(strings.ToValidUTF8(text[:most], "") + "...")
	}
	return err.Error()
}

// setLevel sets the log level of the process, unless it has a logger of its own. f.mu is held.
func (f *Follower) setLevel(level LogLevel) {
	if h, ok := f.log.Handler().(*levelled); ok {
		h.set(level)
	}
}

// setPrices puts prices of a pool in force, if they are others than before. f.mu is held.
func (f *Follower) setPrices(pool string, prices json.RawMessage) {
	if apply := f.prices[pool]; apply != nil && f.priced[pool] != string(prices) {
		f.priced[pool] = string(prices)
		apply(prices)
	}
}

// source returns the file as far as it concerns one pool.
func (f *Follower) source(pool string) protocol.FileSource {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pools[pool] = true
	return &poolFile{f, pool}
}

// onPrices calls apply when other prices count.
func (f *Follower) onPrices(pool string, apply func(json.RawMessage)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prices[pool], f.priced[pool] = apply, string(f.start.plan[pool].prices)
}

// A poolFile is a protocol.FileSource.
type poolFile struct {
	f    *Follower
	pool string
}

// File implements protocol.FileSource.
func (p *poolFile) File() protocol.OwnFile {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	return p.f.own[p.pool]
}

// InForce implements protocol.FileSource.
func (p *poolFile) InForce(file protocol.File) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	level, prices := p.f.start.level, p.f.start.plan[p.pool].prices
	if file.Hash != "" {
		level = file.LogLevel
		if file.Prices != nil {
			prices = file.Prices
		}
	}
	p.f.setLevel(level)
	p.f.setPrices(p.pool, prices)
}
