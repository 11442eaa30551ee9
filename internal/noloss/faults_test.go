package noloss

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// plenty is a limit that lets the rest of a lane pass soon.
const plenty = 2000

const (
	sigterm = syscall.SIGTERM
	sigusr1 = syscall.SIGUSR1
)

// A fault ends a process, or its stream, in the middle of its work, and sees to it
// that there is another.
type fault struct {
	name   string
	inject func(l *lane) error
}

var faults = []fault{
	{"kill", kill},
	{"terminate", terminate},
	{"cut off", cutOff},
	{"panic", makePanic},
	{"close", closeStream},
}

// forced takes 15 s, and has lanes of its own.
var forced = fault{"forced stop", forcedStop}

func kill(l *lane) error {
	if err := l.proc.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-l.proc.Gone
	f, _ := l.current()
	f.Abort()
	return l.replace()
}

// terminate is what Kubernetes and the platform do in good order.
func terminate(l *lane) error {
	if err := l.proc.signal(sigterm); err != nil {
		return err
	}
	f, _ := l.current()
	if err := f.Close(); err != nil {
		return fmt.Errorf("what was in flight was not answered: %w", err)
	}
	return errors.Join(l.ended(), l.replace())
}

func cutOff(l *lane) error {
	if err := l.proc.signal(sigterm); err != nil {
		return err
	}
	f, _ := l.current()
	f.Abort()
	return errors.Join(l.ended(), l.replace())
}

func makePanic(l *lane) error {
	f, _ := l.current()
	if err := l.proc.signal(sigusr1); err != nil {
		return err
	}
	select {
	case <-f.Broken():
	case <-time.After(exitWithin):
		return errors.New("the handler was made to panic, and the stream goes on")
	}
	f.Abort()
	return errors.Join(l.ended(), l.replace())
}

// closeStream ends the stream, and with it the contexts of what is in flight.
//
// The process goes on if the stream was quiet. But numaflow-go v0.12.0 takes it for a
// failure of the handler when a response is being sent that moment, and in the middle of
// a sink's batch nearly always, also without a wrapper: then the server ends.
func closeStream(l *lane) error {
	f, _ := l.current()
	f.Abort()
	l.cut = true
	if _, err := l.proc.end(serverEnds); err == nil {
		return l.revive()
	}
	if err := l.redial(); err != nil {
		return errors.Join(l.ended(), l.revive())
	}
	return nil
}

// serverEnds is how long a server gets to end with its stream.
const serverEnds = 100 * time.Millisecond

// numaflow-go's patience with open streams after SIGTERM.
const patience = 15 * time.Second

// forcedStop is SIGTERM while nobody closes the stream.
func forcedStop(l *lane) error {
	began := time.Now()
	if err := l.awaitFlight(); err != nil {
		return err
	}
	if err := l.proc.signal(sigterm); err != nil {
		return err
	}
	if _, err := l.proc.end(patience + exitWithin); err != nil {
		return err
	}
	if took := time.Since(began); took < patience-time.Second {
		return fmt.Errorf("the process has ended after %s, with its stream open", took)
	}
	f, _ := l.current()
	f.Abort()
	l.job.Rate = plenty // for what is left
	return l.replace()
}
