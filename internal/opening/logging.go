package opening

import (
	"io"
	"log/slog"
	"os"
)

// A LogLevel is the lowest level that is logged.
type LogLevel = string

// The levels.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"
)

// A LogFormat is the format of log lines.
type LogFormat = string

// The formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// logger returns the logger of this configuration.
func (c Config) logger() *slog.Logger {
	switch {
	case c.Logger != nil:
		return c.Logger
	case c.LogLevel != "" || c.LogFormat != "":
		return NewLogger(&c, os.Stderr, slog.LevelInfo)
	}
	return slog.Default()
}

// NewLogger returns a logger that writes to w according to the settings, for a program of this module. least is the default level.
func NewLogger(c *Config, w io.Writer, least slog.Level) *slog.Logger {
	switch c.LogLevel {
	case LogDebug:
		least = slog.LevelDebug
	case LogInfo:
		least = slog.LevelInfo
	case LogWarn:
		least = slog.LevelWarn
	case LogError:
		least = slog.LevelError
	}
	o := &slog.HandlerOptions{Level: least}
	if c.LogFormat == LogJSON {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
