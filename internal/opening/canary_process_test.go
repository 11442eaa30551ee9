package opening

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// canaryVariable names the file with what the canary's process is to do. It has
// not the prefix of the settings.
const canaryVariable = "CANARY_PLACES"

// A place is one way to give the process a secret.
type place struct {
	Name string            `json:"name"`
	Env  map[string]string `json:"env"`
	// Refused: the configuration is wrong.
	Refused bool `json:"refused"`
}

// canaryProcess is a program of a user's that prints all there is to print: it
// opens every place as its variables say, at debug level, with what the drivers
// log going where they like, and ends with a panic of which a Config is the value.
func canaryProcess(file string) {
	content, err := os.ReadFile(file)
	var places []place
	if err = errors.Join(err, json.Unmarshal(content, &places)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var all sync.WaitGroup
	var last Config
	for _, p := range places {
		for name, value := range p.Env {
			os.Setenv(name, value)
		}
		log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("place", p.Name)
		c, err := Load()
		asSet := p.Env["NUMATHROTTLE_STORE"]
		parsed, faults := config.ParseStore(asSet)
		tell(os.Stdout, p.Name+" load", c, err, parsed, &parsed, errors.Join(faults...), Config{Store: asSet}, &Config{Store: asSet})
		c.Logger = log
		if p.Refused {
			_, err = FromEnv(context.Background())
			tell(os.Stdout, p.Name+" from env", c, err)
		} else if err == nil {
			all.Go(func() { canaryRun(p.Name, c) })
			last = c
		}
		for name := range p.Env {
			os.Unsetenv(name)
		}
	}
	all.Wait()
	panic(last)
}

// canaryRun uses one configuration in every way.
func canaryRun(name string, c Config) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fast := c
	fast.FailFast = true
	th, err := Open(ctx, fast)
	tell(os.Stdout, name+" open fail-fast", err)
	if err == nil {
		tell(os.Stdout, name+" status", th.Status(), th.Close())
	}

	th, err = Open(ctx, c)
	tell(os.Stdout, name+" open", err)
	if err != nil {
		return
	}
	canaryMember(ctx, name, c)
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	permit, err := th.Acquire(short, 1)
	cancel()
	tell(os.Stdout, name+" acquire", permit, err)
	throttling, _ := th.Throttled()
	tell(os.Stdout, name+" throttled", throttling, th.Status(), th.Close())
}

// canaryMember joins the pool by hand, to look at the member that a Throttle hides.
func canaryMember(ctx context.Context, name string, c Config) {
	store, _ := c.check()
	creds, faults := c.loadCredentials(&store)
	tell(os.Stdout, name+" parts", store, &store, errors.Join(faults...))
	b, err := c.backend(&store, creds)
	tell(os.Stdout, name+" backend", err)
	member, err := consensus.Join(ctx, b, c.Pool, consensus.WithID(c.ID+"2"), consensus.WithLogger(c.Logger))
	if err != nil {
		tell(os.Stdout, name+" join", err)
		return
	}
	end := time.Now().Add(3 * time.Second) // for some retries, or an answer
	for member.View().Live == 0 && time.Now().Before(end) {
		time.Sleep(10 * time.Millisecond)
	}
	view := member.View()
	tell(os.Stdout, name+" view", view, view.LastError)
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	docs, roster, err := b.Load(short, c.Pool)
	tell(os.Stdout, name+" load", docs, roster, err)
	version, err := b.Save(short, c.Pool, driver.DocumentReport{Name: "limit", Version: 1, Body: []byte("x")})
	tell(os.Stdout, name+" save", version, err)
	tell(os.Stdout, name+" leave", member.Leave(ctx), b.Close())
}

// tell prints values in every way, and errors with all that they wrap.
func tell(w io.Writer, what string, values ...any) {
	var out strings.Builder
	for _, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			fmt.Fprintf(&out, "%s: "+verb+"\n", what, value)
		}
		for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(handler).Info("told", "what", what, "value", value)
		}
		if text, err := json.Marshal(value); err == nil {
			out.Write(append(text, '\n'))
		}
		if err, ok := value.(error); ok {
			walk(&out, err)
		}
	}
	fmt.Fprint(w, out.String())
}

// walk prints what an error wraps, as a service that collects errors does.
func walk(out *strings.Builder, err error) {
	for err != nil {
		fmt.Fprintf(out, "  wraps %v %+v %#v\n", err, err, err)
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, one := range many.Unwrap() {
				walk(out, one)
			}
			return
		}
		err = errors.Unwrap(err)
	}
}
