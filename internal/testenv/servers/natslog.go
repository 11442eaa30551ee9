package servers

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// natsLog takes what an embedded NATS server logs: notices and worse go to a file, and a fatal error is kept. The
// server's own loggers end the whole process on a fatal error.
type natsLog struct {
	file string

	mu     sync.Mutex
	output *os.File // nil until the first line
	first  error    // the first fatal error since reset
}

// Noticef implements server.Logger.
func (l *natsLog) Noticef(format string, v ...any) { l.write("INF", format, v) }

// Warnf implements server.Logger.
func (l *natsLog) Warnf(format string, v ...any) { l.write("WRN", format, v) }

// Errorf implements server.Logger.
func (l *natsLog) Errorf(format string, v ...any) { l.write("ERR", format, v) }

// Debugf implements server.Logger; debug output is off.
func (l *natsLog) Debugf(string, ...any) {}

// Tracef implements server.Logger; trace output is off.
func (l *natsLog) Tracef(string, ...any) {}

// Fatalf implements server.Logger.
func (l *natsLog) Fatalf(format string, v ...any) {
	text := l.write("FTL", format, v)
	err := fmt.Errorf("NATS server: %s", text)
	if strings.Contains(strings.ToLower(text), "address already in use") {
		err = fmt.Errorf("NATS server: %s: %w", text, errPortTaken)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = err
	}
}

func (l *natsLog) write(level, format string, v []any) string {
	text := fmt.Sprintf(format, v...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.output == nil {
		output, err := os.OpenFile(l.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return text // the server goes on without a log
		}
		l.output = output
	}
	fmt.Fprintf(l.output, "%s [%s] %s\n", time.Now().Format(time.RFC3339Nano), level, text)
	return text
}

func (l *natsLog) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

func (l *natsLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first = nil
}

// close closes the file. A line logged later opens it again.
func (l *natsLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.output == nil {
		return nil
	}
	err := l.output.Close()
	l.output = nil
	return err
}
