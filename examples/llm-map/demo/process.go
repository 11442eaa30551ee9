package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// A process is one of llm-map with the stream that feeds it.
type process struct {
	id       string
	cmd      *exec.Cmd
	feed     *dataplane.Map
	log      string
	gone     chan struct{} // closed when the process has ended
	answered atomic.Int64
}

// start starts a process as a pod would be: by its environment.
func (d *demo) start(ctx context.Context, id string) (*process, error) {
	socket := filepath.Join(d.dir, id+".sock")
	p := &process{
		id: id, cmd: exec.CommandContext(context.WithoutCancel(ctx), d.binary),
		log: filepath.Join(d.dir, id+".log"), gone: make(chan struct{}),
	}
	p.cmd.Env = append(withoutSettings(os.Environ()),
		"NUMAFLOW_NAMESPACE=demo", "NUMAFLOW_PIPELINE_NAME=llm", "NUMAFLOW_VERTEX_NAME=map", "NUMAFLOW_POD="+id,
		"NUMATHROTTLE_STORE="+d.store,
		"NUMATHROTTLE_POOL=llm-demo/"+strconv.FormatInt(d.began.UnixNano(), 36),
		"LLM_MAP_PROVIDER="+d.options.provider,
		"LLM_MAP_BASE_URL="+d.provider.url,
		"LLM_MAP_MODEL=demo",
		"LLM_MAP_API_KEY=demo",
		"LLM_MAP_SYSTEM=You make one sentence of what you are told.",
		"LLM_MAP_PROMPT=Summarize: {{.Text}}",
		"LLM_MAP_MAX_TOKENS="+strconv.Itoa(d.maxTokens),
		"LLM_MAP_REQUESTS_PER_MINUTE="+strconv.Itoa(d.provides.RequestsPerMinute),
		"LLM_MAP_TOKENS_PER_MINUTE="+strconv.Itoa(d.provides.TokensPerMinute),
		"LLM_MAP_IN_FLIGHT="+strconv.Itoa(d.inFlight),
		"LLM_MAP_SOCKET="+socket, "LLM_MAP_SERVER_INFO="+filepath.Join(d.dir, id+".info"),
	)
	logFile, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	p.cmd.Stdout, p.cmd.Stderr = logFile, logFile
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	d.processes = append(d.processes, p)
	go func() {
		_ = p.cmd.Wait()
		close(p.gone)
	}()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if p.feed, err = dataplane.Dial(ctx, socket); err != nil {
		return nil, fmt.Errorf("stream to %s: %w; its log:\n%s", id, err, p.logTail())
	}
	return p, nil
}

// withoutSettings leaves out what would be read as settings of llm-map.
func withoutSettings(environ []string) []string {
	var out []string
	for _, entry := range environ {
		if !strings.HasPrefix(entry, "NUMATHROTTLE_") && !strings.HasPrefix(entry, "LLM_MAP_") && !strings.HasPrefix(entry, "NUMAFLOW_") {
			out = append(out, entry)
		}
	}
	return out
}

// logTail is the end of what the process wrote.
func (p *process) logTail() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-2000):])
}

// end closes the stream and ends the process in good order.
func (p *process) end() error {
	err := errors.Join(p.feed.Close(), p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.gone:
	case <-time.After(20 * time.Second):
		return errors.Join(err, fmt.Errorf("%s did not end within 20 s of SIGTERM", p.id))
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		err = errors.Join(err, fmt.Errorf("%s ended with code %d; its log:\n%s", p.id, code, p.logTail()))
	}
	return err
}

// killAll ends what is still running after a failure.
func (d *demo) killAll() {
	for _, p := range d.processes {
		select {
		case <-p.gone:
		default:
			_ = p.cmd.Process.Kill()
			<-p.gone
		}
	}
}
