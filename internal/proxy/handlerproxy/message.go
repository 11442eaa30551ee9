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

// A message is a request of the platform. It implements the datum of every kind of handler for the wrappers, and is decoded only on demand.
type message struct {
	raw  []byte
	id   string
	body []byte // of the inner message
	at   *requestLayout

	// exchange leads to the handler, and replies receives its replies.
	exchange *exchange
	replies  chan []byte
	// answer is the handler's answer, once it has come.
	answer []byte
}

// An envelope holds the common fields of every request and response.
type envelope struct {
	id             string
	body           []byte
	handshake, end bool
}

// open parses the envelope of a request.
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

// open parses the envelope of a response.
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

// Keys, Value and the others are a datum's methods for the wrappers.
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
	_ = proto.Unmarshal(raw, &t) // an unreadable time is 1970, as without one
	return t.AsTime()
}

// UserMetadata and SystemMetadata affect no decision. An unchanged forwarded message carries its metadata as bytes.
func (*message) UserMetadata() *mapsdk.UserMetadata     { return nil }
func (*message) SystemMetadata() *mapsdk.SystemMetadata { return nil }

// ask sends the message to the handler and waits for its answer. If a stream ends without one, it ends the goroutine: the proxy must not
// answer in the handler's place.
func (m *message) ask(ctx context.Context) {
	m.send(1)
	m.answer = m.reply(ctx)
}

// send sends the message to the handler, with room for its replies.
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

// onlyDrops reports whether the platform forwards nothing of a response. Like the platform, it takes a result for a drop if any of its tags
// says so.
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
