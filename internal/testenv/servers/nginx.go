package servers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// Nginx is an nginx process on a loopback port.
type Nginx struct {
	daemon
	port *port
}

// StartNginx starts an nginx with its files in dir. httpLines stand in the http block of its configuration, and
// serverLines in that of its only server. Everything is answered by "ok" unless they say otherwise.
func StartNginx(ctx context.Context, dir string, httpLines, serverLines []string) (*Nginx, error) {
	path, err := locate("nginx", "nginx")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of the nginx server: %w", err)
	}
	for attempt := 1; ; attempt++ {
		server, err := startNginxOnce(ctx, path, dir, httpLines, serverLines)
		if err == nil || attempt == startAttempts || !errors.Is(err, errPortTaken) {
			return server, err
		}
	}
}

func startNginxOnce(ctx context.Context, path, dir string, httpLines, serverLines []string) (*Nginx, error) {
	reserved, err := reservePort(ctx)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, nginxConfig(dir, reserved.addr(), httpLines, serverLines), 0o600); err != nil {
		reserved.release()
		return nil, fmt.Errorf("configuration of the nginx server: %w", err)
	}
	server := &Nginx{port: reserved}
	server.path = path
	server.args = []string{"-c", file, "-p", dir, "-e", "stderr"}
	server.dir = dir
	server.logFile = filepath.Join(dir, "nginx.log")
	server.answers = server.checkAnswers
	if err := server.start(ctx); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return server, nil
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

// Close kills the server and gives its port back. The files stay.
func (n *Nginx) Close() error {
	err := n.close()
	n.port.release()
	return err
}
