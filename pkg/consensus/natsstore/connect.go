package natsstore

import (
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
)

// ConnectOptions returns options for the connection of a Store. It connects and reconnects forever, notices a dead server within three
// seconds, and after a reconnect never sends writes from before it. Options that the caller appends override these. They include
// ErrorHandler with slog.Default.
func ConnectOptions() []nats.Option {
	return []nats.Option{
		nats.Timeout(time.Second),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(200 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 200*time.Millisecond),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(time.Second),
		nats.MaxPingsOutstanding(2),
		errorHandler(slog.Default()),
	}
}

// ErrorHandler logs errors that a server reports only to the connection, above all missing permissions, which a caller sees as a timeout.
// The messages name subjects, never credentials.
func errorHandler(log *slog.Logger) nats.Option {
	return nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		log.Warn("the NATS server reported an error", "error", err)
	})
}
