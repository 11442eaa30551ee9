package servers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
)

// Nginx is an nginx process on a loopback port.
type Nginx struct{ daemon }

// StartNginx starts an nginx with its files in dir. httpLines stand in the http block of its configuration, and
// serverLines in that of its only server. Everything is answered by "ok" unless they say otherwise.
func StartNginx(ctx context.Context, dir string, httpLines, serverLines []string) (*Nginx, error) {
	return retry(func() (_ *Nginx, err error) {
		n := &Nginx{}
		n.daemon, err = newDaemon(ctx, "nginx", dir, "nginx.conf", func(p *port) []byte { return nginxConfig(dir, p.addr(), httpLines, serverLines) })
		if err != nil {
			return nil, err
		}
		n.args = []string{"-c", filepath.Join(dir, "nginx.conf"), "-p", dir, "-e", "stderr"}
		n.answers = n.checkAnswers
		if err := n.Restart(ctx); err != nil {
			return nil, errors.Join(err, n.Close())
		}
		return n, nil
	})
}

// nginxConfig is one process, in the foreground, that writes nowhere but below dir.
func nginxConfig(dir, addr string, httpLines, serverLines []string) []byte {
	lines := []string{
		"daemon off;", "master_process off;", "pid nginx.pid;", "error_log stderr warn;", "events { worker_connections 512; }",
		"http {", "access_log off;",
	}
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		lines = append(lines, fmt.Sprintf("%s_temp_path %q;", kind, filepath.Join(dir, kind)))
	}
	lines = append(lines, httpLines...)
	lines = append(lines, "server {", "listen "+addr+";", "location = /alive { return 200 ok; }")
	lines = append(lines, serverLines...)
	lines = append(lines, "}", "}")
	return []byte(strings.Join(lines, "\n") + "\n")
}

// checkAnswers asks for what only this configuration has.
func (n *Nginx) checkAnswers(ctx context.Context, _ int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.URL()+"/alive", http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("nginx answers with status %d", res.StatusCode)
	}
	return nil
}

// URL returns http://host:port. It stays the same over restarts.
func (n *Nginx) URL() string { return "http://" + n.port.addr() }
