package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/demo/stage"
)

// A process is a process of llm-map.
type process struct {
	*stage.Process

	answered atomic.Int64
}

// start starts a process like a pod: with its environment.
func (d *demo) start(ctx context.Context, id string) error {
	return d.startWith(ctx, id,
		"LLM_MAP_API_KEY=demo",
		"LLM_MAP_REQUESTS_PER_MINUTE="+strconv.Itoa(d.provides.RequestsPerMinute),
		"LLM_MAP_TOKENS_PER_MINUTE="+strconv.Itoa(d.provides.TokensPerMinute),
		"LLM_MAP_IN_FLIGHT="+strconv.Itoa(d.inFlight),
	)
}

// startWith starts a process with some settings of its own.
func (d *demo) startWith(ctx context.Context, id string, settings ...string) error {
	socket := filepath.Join(d.dir, id+".sock")
	env := append(withoutSettings(os.Environ()),
		"NUMAFLOW_NAMESPACE=demo", "NUMAFLOW_PIPELINE_NAME=llm", "NUMAFLOW_VERTEX_NAME=map", "NUMAFLOW_POD="+id,
		"NUMATHROTTLE_STORE="+d.store,
		"NUMATHROTTLE_POOL=llm-demo/"+strconv.FormatInt(d.began.UnixNano(), 36),
		"LLM_MAP_PROVIDER="+d.options.provider,
		"LLM_MAP_BASE_URL="+d.provider.url,
		"LLM_MAP_MODEL=demo",
		"LLM_MAP_SYSTEM=You make one sentence of what you are told.",
		"LLM_MAP_PROMPT=Summarize: {{.Text}}",
		"LLM_MAP_MAX_TOKENS="+strconv.Itoa(d.maxTokens),
		"LLM_MAP_SOCKET="+socket, "LLM_MAP_SERVER_INFO="+filepath.Join(d.dir, id+".info"),
	)
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	p, err := stage.Start(ctx, d.dir, id, d.binary, socket, append(env, settings...), nil)
	if p != nil {
		d.processes = append(d.processes, &process{Process: p})
	}
	return err
}

// withoutSettings removes the variables that llm-map would read as settings.
func withoutSettings(environ []string) []string {
	var out []string
	for _, entry := range environ {
		if !strings.HasPrefix(entry, "NUMATHROTTLE_") && !strings.HasPrefix(entry, "LLM_MAP_") && !strings.HasPrefix(entry, "NUMAFLOW_") {
			out = append(out, entry)
		}
	}
	return out
}

// killAll ends the remaining processes after a failure.
func (d *demo) killAll() {
	for _, p := range d.processes {
		_ = p.Kill()
	}
}
