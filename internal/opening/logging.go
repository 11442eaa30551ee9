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
	h := &levelled{level: &slog.LevelVar{}, least: least}
	h.set(c.LogLevel)
	o := &slog.HandlerOptions{Level: h.level}
	if h.Handler = slog.NewTextHandler(w, o); c.LogFormat == LogJSON {
		h.Handler = slog.NewJSONHandler(w, o)
	}
	return slog.New(h)
}

// A levelled is a handler whose level may change.
type levelled struct {
	slog.Handler

	level *slog.LevelVar
	least slog.Level // the default
}

// set sets the level of this handler, and of those made from it.
func (h *levelled) set(level LogLevel) {
	switch level {
	case LogDebug:
		h.level.Set(slog.LevelDebug)
	case LogInfo:
		h.level.Set(slog.LevelInfo)
	case LogWarn:
		h.level.Set(slog.LevelWarn)
	case LogError:
		h.level.Set(slog.LevelError)
	default:
		h.level.Set(h.least)
	}
}
