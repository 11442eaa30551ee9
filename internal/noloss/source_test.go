package noloss

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

const (
	readCount   = 100
	readTimeout = 20 * time.Millisecond
	// One message in so many is refused when it is first read.
	refuseOneIn = 20
)

// sourceFeed is the feed of a source, which is read and not offered anything.
type sourceFeed struct{ *dataplane.Source }

func (sourceFeed) offer(context.Context, []int) ([]outcome, error) {
	return nil, errors.New("a source is offered nothing")
}

// Stats counts what was read; what became of it is booked by the driver.
func (f sourceFeed) Stats() dataplane.Stats {
	n := f.Source.Stats().Messages
	return dataplane.Stats{Sent: n, Answered: n}
}

// drain reads from the source until all of its messages were acknowledged. To be
// sent is to be read here, and to be answered is to have the acknowledgement
// confirmed; a read that leads to none has failed. An acknowledgement that is not
// confirmed is sent again over the next connection, as the platform does.
func (l *lane) drain() {
	open := map[int]dataplane.Offset{} // read, and not settled
	for l.ctx.Err() == nil && l.answers() < len(l.messages) {
		f, changed := l.current()
		s, ok := f.(sourceFeed)
		if !ok {
			return
		}
		err := l.drainOnce(s, open)
		if err != nil {
			select {
			case <-changed:
			case <-l.ctx.Done():
			}
		}
	}
}

func (l *lane) drainOnce(s sourceFeed, open map[int]dataplane.Offset) error {
	read, err := s.Read(l.ctx, readCount, readTimeout)
	var refused []dataplane.Nacked
	for _, m := range read {
		id, convErr := strconv.Atoi(string(m.Value))
		if convErr != nil || id < 0 || id >= len(l.messages) {
			l.t.Errorf("read a message %q", m.Value)
			continue
		}
		if first := l.bookRead(id, open); first && id%refuseOneIn == 0 {
			refused = append(refused, dataplane.Nacked{Offset: m.Offset})
		} else {
			open[id] = m.Offset
		}
	}
	if err != nil {
		l.forget(refused)
		return err
	}
	if len(refused) > 0 {
		err = s.Nack(l.ctx, refused)
		l.forget(refused)
		if err != nil {
			return err
		}
	}
	var offsets []dataplane.Offset
	for _, o := range open {
		offsets = append(offsets, o)
	}
	if err := s.Ack(l.ctx, offsets); err != nil {
		return err
	}
	l.bookAcks(open)
	clear(open)
	return nil
}

// bookRead enters that a message was read, and tells whether it is the first time.
func (l *lane) bookRead(id int, open map[int]dataplane.Offset) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := &l.messages[id]
	m.Sent++
	if _, again := open[id]; again || m.Answered > 0 {
		m.Failed++ // one of the two will do
	}
	return m.Sent == 1
}

// forget books messages that were refused, or could not be: they come again.
func (l *lane) forget(refused []dataplane.Nacked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range refused {
		id, _ := strconv.Atoi(string(n.Offset.Value))
		l.messages[id].Failed++
	}
}

func (l *lane) bookAcks(open map[int]dataplane.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range open {
		if m := &l.messages[id]; m.Answered == 0 {
			m.Answered++
			l.answer()
		}
	}
}
