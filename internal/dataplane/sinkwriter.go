package dataplane

import (
	"context"
	"fmt"
	"time"
)

const (
	defaultRetries       = 65535
	defaultRetryInterval = time.Millisecond
)

// A SinkWriter plays the sink component of the platform over one to three sinks. It retries failures, routes messages to the fallback and
// the on-success sink, and returns the outcome of each message. Write is safe for concurrent use; set the fields before.
type SinkWriter struct {
	Main *Sink
	// Fallback and OnSuccess sinks; nil when the vertex has none.
	Fallback, OnSuccess *Sink
	// Retries is how often a sink's failures are retried by the same sink. Defaults to 65535, as on the platform.
	Retries int
	// RetryInterval is the pause before each. Defaults to 1 ms, as on the platform.
	RetryInterval time.Duration
}

// A Written is the outcome of a message given to a SinkWriter.
type Written struct {
	// ID is the ID that the handlers have seen, the same at every try and in every sink.
	ID string
	// Nack reports whether the message is delivered again; otherwise the platform acknowledges it.
	Nack bool
	// NackOptions of a Nack; nil when the sink gave none.
	NackOptions *NackOptions
	// Main and Routed are the last responses of the main sink, and of the fallback or
	// on-success sink that the message was sent on to. Routed is empty when it was not.
	Main, Routed SinkResult
	// Retries is the number of retries in all sinks together.
	Retries int
}

// Write sends msgs to the main sink, in one batch, and treats the responses like the platform. The results are in the order of msgs.
//
// An error means that the platform acknowledges none of them. A sink's stream broke (ErrBroken) or was closed, ctx ended, or a message
// failed more often than Retries. Or a sink routed a message to an impossible target: a sink that the vertex does not have, from the
// fallback or on-success sink to yet another, or a serving store.
func (w *SinkWriter) Write(ctx context.Context, msgs []Message) ([]Written, error) {
	if len(msgs) == 0 {
		return nil, nil
	}
	out := make([]Written, len(msgs))
	main := &leg{sink: w.Main, msgs: msgs, ids: w.Main.newIDs(len(msgs)), of: make([]int, len(msgs))}
	for i := range msgs {
		main.of[i] = i
		out[i].ID = main.ids[i]
	}
	if err := w.run(ctx, main, out); err != nil {
		return nil, fmt.Errorf("main sink: %w", err)
	}
	fallback, onSuccess := &leg{sink: w.Fallback}, &leg{sink: w.OnSuccess}
	for i, r := range main.results {
		out[i].Main = r
		switch r.Status {
		case SinkFallback:
			fallback.add(i, r.ID, msgs[i])
		case SinkOnSuccess:
			onSuccess.add(i, r.ID, onSuccessMessage(msgs[i], r.OnSuccess))
		case SinkServe:
			return nil, fmt.Errorf("main sink: message %s is to be served, and there is no serving store", r.ID)
		case SinkNack:
			out[i].Nack, out[i].NackOptions = true, r.NackOptions
		default:
		}
	}
	if err := w.route(ctx, "fallback sink", fallback, out); err != nil {
		return nil, err
	}
	if err := w.route(ctx, "on-success sink", onSuccess, out); err != nil {
		return nil, err
	}
	return out, nil
}

// route forwards the messages that the main sink has routed to another.
func (w *SinkWriter) route(ctx context.Context, name string, l *leg, out []Written) error {
	if len(l.msgs) == 0 {
		return nil
	}
	if l.sink == nil {
		return fmt.Errorf("no %s, for message %s", name, l.ids[0])
	}
	if err := w.run(ctx, l, out); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for i, r := range l.results {
		to := &out[l.of[i]]
		to.Routed = r
		switch r.Status {
		case SinkSuccess:
		case SinkNack:
			to.Nack, to.NackOptions = true, r.NackOptions
		case SinkOnSuccess: // the platform takes it for a success there
		default:
			return fmt.Errorf("%s: message %s has status %q, which is not allowed there", name, r.ID, r.Status)
		}
	}
	return nil
}

// run sends the messages of a leg, and those that failed again, until none is left.
func (w *SinkWriter) run(ctx context.Context, l *leg, out []Written) error {
	retries, interval := w.Retries, w.RetryInterval
	if retries == 0 {
		retries = defaultRetries
	}
	if interval == 0 {
		interval = defaultRetryInterval
	}
	l.results = make([]SinkResult, len(l.msgs))
	todo := l.all()
	for try := 0; ; try++ {
		ids, msgs := l.pick(todo)
		results, err := l.sink.write(ctx, ids, msgs)
		if err != nil {
			return err
		}
		var failed []int
		for i, r := range results {
			l.results[todo[i]] = r
			if r.Status == SinkFailure {
				failed = append(failed, todo[i])
			}
		}
		if len(failed) == 0 {
			return nil
		}
		if try == retries {
			return fmt.Errorf("%d messages failed at every one of %d tries, first %s: %s",
				len(failed), try+1, l.ids[failed[0]], l.results[failed[0]].Error)
		}
		if todo = failed; !pause(ctx, interval) {
			return fmt.Errorf("%d messages failed: %w", len(failed), context.Cause(ctx))
		}
		for _, i := range failed {
			out[l.of[i]].Retries++
		}
	}
}

// pause waits for d; false when ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// A leg is the part of a batch that goes to one sink.
type leg struct {
	sink    *Sink
	ids     []string
	msgs    []Message
	of      []int // position in the whole batch
	results []SinkResult
}

func (l *leg) add(of int, id string, m Message) {
	l.of, l.ids, l.msgs = append(l.of, of), append(l.ids, id), append(l.msgs, m)
}

func (l *leg) all() []int {
	all := make([]int, len(l.msgs))
	for i := range all {
		all[i] = i
	}
	return all
}

func (l *leg) pick(positions []int) (ids []string, msgs []Message) {
	for _, i := range positions {
		ids, msgs = append(ids, l.ids[i]), append(msgs, l.msgs[i])
	}
	return ids, msgs
}

// onSuccessMessage is the message with what the sink has put in its place.
func onSuccessMessage(m Message, instead *Message) Message {
	if instead != nil {
		m.Keys, m.Value = instead.Keys, instead.Value
	}
	return m
}
