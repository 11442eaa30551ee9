package natsstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// The headers of a write, and those that mark a deleted entry.
const (
	headerExpectStream  = "Nats-Expected-Stream"
	headerExpectSubject = "Nats-Expected-Last-Subject-Sequence"
	headerExpectLast    = "Nats-Expected-Last-Sequence"
	headerOperation     = "KV-Operation"       // deleted by a user
	headerMarker        = "Nats-Marker-Reason" // deleted by the server
)

// An entry is the bucket's value for a key.
type entry struct {
	value   []byte // nil: nothing, or deleted
	seq     uint64 // of the newest message, including a deletion marker; 0: none
	created time.Time
}

// micros returns when the value was written, in microseconds since 1970; 0 without a value.
func (e *entry) micros() int64 {
	if e.value == nil {
		return 0
	}
	return max(e.created.UnixMicro(), 0)
}

//nolint:tagliatelle // the name is JetStream's
type getRequest struct {
	LastBySubject string `json:"last_by_subj"`
}

type getReply struct {
	apiReply
	Message *struct {
		Seq    uint64    `json:"seq"`
		Header []byte    `json:"hdrs"`
		Data   []byte    `json:"data"`
		Time   time.Time `json:"time"`
	} `json:"message"`
}

type writeReply struct {
	apiReply
	Stream string `json:"stream"`
	Seq    uint64 `json:"seq"`
}

// read requests the stream's information from the stream's leader, unless it is known, and then the newest entry of a subject. It requests
// neither both at once, nor an entry of a stream that never held one. A server of version 2.9.10 crashes on that while the stream is being
// made.
func (s line) read(ctx context.Context, subject string, info *streamInfo) (*streamInfo, *entry, error) {
	if info == nil {
		var err error
		if info, err = s.info(ctx); err != nil || info.State.LastSeq == 0 {
			return info, &entry{}, err
		}
	}
	e, err := s.get(ctx, subject)
	if is(err, codeStreamNotFound) {
		err = errGone
	}
	return info, e, err
}

// get requests the newest entry of a subject from the stream's leader.
func (s line) get(ctx context.Context, subject string) (*entry, error) {
	var reply getReply
	err := s.ask(ctx, callTimeout, s.api("STREAM.MSG.GET"), getRequest{subject}, &reply)
	switch {
	case is(err, codeNoMessage):
		return &entry{}, nil
	case err != nil:
		return nil, err
	case reply.Message == nil || reply.Message.Seq == 0:
		return nil, fmt.Errorf("natsstore: %s: no message in the reply: %w", subject, driver.ErrWrongAnswer)
	}
	m := reply.Message
	deleted, err := isMarker(m.Header)
	if err != nil {
		return nil, fmt.Errorf("natsstore: %s: %w: %w", subject, driver.ErrWrongAnswer, err)
	}
	if deleted {
		return &entry{seq: m.Seq}, nil
	}
	// An empty value was written by somebody else; it is not absent.
	return &entry{value: append([]byte{}, m.Data...), seq: m.Seq, created: m.Time}, nil
}

// isMarker reports whether an entry with these headers marks a deleted value.
func isMarker(header []byte) (bool, error) {
	if len(header) == 0 {
		return false, nil
	}
	h, err := nats.DecodeHeadersMsg(header)
	if err != nil {
		return false, err
	}
	return h.Get(headerOperation) != "" && h.Get(headerOperation) != "PUT" || h.Get(headerMarker) != "", nil
}

// write writes the value if seq is still the newest message of the subject. Otherwise it returns errConflict.
func (s line) write(ctx context.Context, subject string, value []byte, seq uint64, info *streamInfo) error {
	msg := nats.NewMsg(subject)
	msg.Data = value
	msg.Header.Set(headerExpectStream, s.stream)
	msg.Header.Set(headerExpectSubject, strconv.FormatUint(seq, 10))
	if !info.checksTwice() {
		// At the first check nothing was newer than seq, and at the second nothing newer than the stream's information, which is older than
		// the first check.
		msg.Header.Set(headerExpectLast, strconv.FormatUint(info.State.LastSeq, 10))
	}
	var reply writeReply
	err := s.send(ctx, callTimeout, msg, &reply)
	switch {
	case is(err, codeWrongSequence, codeInProcess):
		return errConflict
	case err != nil:
		return s.refused(err, len(value), &info.Config)
	case reply.Stream != s.stream || reply.Seq == 0:
		return fmt.Errorf("natsstore: %s: acknowledged by the stream %q as number %d, not by %s: %w",
			subject, reply.Stream, reply.Seq, s.stream, driver.ErrWrongAnswer)
	}
	return nil
}
