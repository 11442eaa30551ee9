package handlerproxy

import (
	"context"
	"runtime"
	"slices"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// A message is a request of the platform. It shows itself to the wrappers as a datum of every kind of
// handler, and is decoded only as far as somebody asks.
type message struct {
	raw  []byte
	id   string
	body []byte // of the message inside
	at   *requestLayout

	// exchange is where the handler is asked, replies takes what it says.
	exchange *exchange
	replies  chan []byte
	// answer is the handler's, once it has answered.
	answer []byte
}

// An envelope is what every request and response has outside of the message itself.
type envelope struct {
	id             string
	body           []byte
	handshake, end bool
}

// open reads the envelope of a request.
func (l *requestLayout) open(raw []byte) (e envelope, err error) {
	err = each(raw, func(f field) {
		switch {
		case f.typ != protowire.BytesType:
		case f.num == l.body:
			e.body = f.value
		case f.num == l.id:
			e.id = string(f.value)
		case f.num == l.handshake:
			e.handshake = number(f.value, 1) != 0
		case f.num == l.status:
			e.end = number(f.value, 1) != 0
		}
	})
	if err == nil && l.bodyID != 0 {
		err = each(e.body, func(f field) {
			if f.num == l.bodyID && f.typ == protowire.BytesType {
				e.id = string(f.value)
			}
		})
	}
	return e, err
}

// open reads the envelope of a response.
func (l *responseLayout) open(raw []byte) (e envelope, err error) {
	err = each(raw, func(f field) {
		switch {
		case f.typ != protowire.BytesType:
		case f.num == l.id:
			e.id = string(f.value)
		case f.num == l.handshake:
			e.handshake = number(f.value, 1) != 0
		case f.num == l.status:
			e.end = number(f.value, 1) != 0
		}
	})
	return e, err
}

// Keys, Value and the others are what the wrappers ask of a datum.
func (m *message) Keys() []string {
	var keys []string
	for _, key := range all(m.body, m.at.keys) {
		keys = append(keys, string(key))
	}
	return keys
}

func (m *message) Value() []byte {
	value, _ := last(m.body, m.at.value)
	return value
}

func (m *message) Headers() map[string]string { return texts(m.body, m.at.headers) }
func (m *message) Id() string                 { return m.id } //nolint:revive // numaflow-go's name
func (m *message) ID() string                 { return m.id }
func (m *message) EventTime() time.Time       { return m.time(m.at.eventTime) }
func (m *message) Watermark() time.Time       { return m.time(m.at.watermark) }

func (m *message) time(num protowire.Number) time.Time {
	raw, _ := last(m.body, num)
	var t timestamppb.Timestamp
	_ = proto.Unmarshal(raw, &t) // what cannot be read is 1970, as without it
	return t.AsTime()
}

// UserMetadata and SystemMetadata are part of no decision. What is forwarded as it came takes its metadata along as bytes.
func (*message) UserMetadata() *mapsdk.UserMetadata     { return nil }
func (*message) SystemMetadata() *mapsdk.SystemMetadata { return nil }

// ask sends the message to the handler and waits for its answer. Without one, because a stream has ended, it ends the
// goroutine: nothing may be said in the handler's place.
func (m *message) ask(ctx context.Context) {
	m.send(1)
	m.answer = m.reply(ctx)
}

// send sends the message to the handler, whose replies have room in the message.
func (m *message) send(room int) {
	err := m.exchange.expect(m, room)
	if err == nil {
		err = m.exchange.tell(m.raw)
	}
	if err != nil {
		m.exchange.fail(err)
		runtime.Goexit()
	}
}

// reply waits for a reply of the handler.
func (m *message) reply(ctx context.Context) []byte {
	select {
	case raw := <-m.replies:
		return raw
	case <-ctx.Done():
		runtime.Goexit()
		return nil // not reached
	}
}

// onlyDrops tells whether the platform forwards nothing of a response. It looks as the platform does: a result is a drop
// if any of its tags says so.
func (l *responseLayout) onlyDrops(raw []byte) bool {
	results := all(raw, l.results)
	for _, result := range results {
		if !slices.Contains(tagsOf(result, l.tags), mapsdk.DROP) {
			return false
		}
	}
	return len(results) > 0
}

func tagsOf(result []byte, num protowire.Number) []string {
	var tags []string
	for _, tag := range all(result, num) {
		tags = append(tags, string(tag))
	}
	return tags
}
