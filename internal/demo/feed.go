package main

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// inFlight is how many messages a processor is offered at once: more than it may handle in any window, so that only the limit holds it
// back.
const inFlight = 128

// A feeder offers the lines of a text to the fed processors. Like the platform, it resends a message to another one when its stream broke.
type feeder struct {
	lines chan string
	again chan string

	in, out, resent atomic.Int64
	failed          atomic.Int64
	pending         sync.WaitGroup
}

func newFeeder(ctx context.Context, input string) (*feeder, string, error) {
	files, name, err := inputFiles(ctx, input)
	if err != nil {
		return nil, "", err
	}
	f := &feeder{lines: make(chan string), again: make(chan string, 64*inFlight)}
	go f.read(ctx, files)
	return f, name, nil
}

// inputFiles returns the files to read: the named one, or Go's own source.
func inputFiles(ctx context.Context, input string) (files []string, name string, err error) {
	if input != "" {
		info, err := os.Stat(input) //nolint:gosec // the file that the user names
		if err != nil {
			return nil, "", fmt.Errorf("DEMO_INPUT: %w", err)
		}
		if info.IsDir() || info.Size() == 0 {
			return nil, "", fmt.Errorf("DEMO_INPUT is %q, allowed: a text file that is not empty", input)
		}
		return []string{input}, input, nil
	}
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output() // the demo runs where it was built
	if err != nil {
		return nil, "", fmt.Errorf("where Go's own source is: %w; name a text in DEMO_INPUT", err)
	}
	root := filepath.Join(strings.TrimSpace(string(goroot)), "src")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return nil
	})
	if err != nil || len(files) == 0 {
		return nil, "", fmt.Errorf("no Go source below %q to read: name a text in DEMO_INPUT", root)
	}
	return files, "the Go source tree", nil
}

// read offers lines until ctx ends, and starts again at the end of the text.
func (f *feeder) read(ctx context.Context, files []string) {
	defer close(f.lines)
	for ctx.Err() == nil {
		for _, path := range files {
			if !f.readFile(ctx, path) {
				return
			}
		}
	}
}

func (f *feeder) readFile(ctx context.Context, path string) bool {
	file, err := os.Open(path) //nolint:gosec // the file that the user names
	if err != nil {
		return ctx.Err() == nil // an unreadable file is skipped
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		select {
		case f.lines <- lines.Text():
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// serve feeds one process until the input or the process ends.
func (f *feeder) serve(p *process) {
	for range inFlight {
		f.pending.Go(func() {
			for f.one(p) {
			}
		})
	}
}

// one hands one line to p. It returns false when there is nothing left to do.
func (f *feeder) one(p *process) bool {
	if !p.isFed() {
		select {
		case <-p.Gone():
			return false
		case <-time.After(20 * time.Millisecond):
			return !f.over()
		}
	}
	var line string
	var ok bool
	select {
	case line = <-f.again:
		ok = true
	default:
		select {
		case line = <-f.again:
			ok = true
		case line, ok = <-f.lines:
			if ok {
				f.in.Add(1)
			}
		}
	}
	if !ok {
		return false
	}
	results, err := p.Feed.Do(context.Background(), dataplane.Message{Value: []byte(line)})
	switch {
	case err != nil:
		f.resent.Add(1)
		f.again <- line
		return p.isFed()
	case len(results) != 1:
		f.failed.Add(1)
	default:
		f.out.Add(1)
	}
	return true
}

// over reports whether no lines are left.
func (f *feeder) over() bool { return f.in.Load() == f.out.Load()+f.failed.Load() && len(f.again) == 0 }
