package open

import (
	"io"
	"log/slog"
	"os"
)

// A LogLevel is the least level that is logged.
type LogLevel string

// The levels.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"
)

// A LogFormat is how lines are logged.
type LogFormat string

// The formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// logger is where this configuration logs.
func (c Config) logger() *slog.Logger {
	switch {
	case c.Logger != nil:
		return c.Logger
	case c.LogLevel != "" || c.LogFormat != "":
		return NewLogger(&c, os.Stderr, slog.LevelInfo)
	}
	return slog.Default()
}

// NewLogger returns a logger that writes to w as the settings say, for a program of this module. least is the level where they say none.
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
