package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/outbound"
	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var (
	errLongDestination = errors.New("the destination's name is longer than 128 bytes")
	errTooLarge        = errors.New("the message costs more than the limit can ever grant")
)

// send sends a group and answers all its messages. If the service rejects the content, it sends two halves, until the faulty message is
// alone.
func (b *batch) send(ctx context.Context, g group) {
	res, err := b.client.do(ctx, b.newCall(g))
	if len(g.Items) > 1 && (splits(res) || tooLarge(err)) && b.ctx.Err() == nil {
		b.meters.halved.Add(b.ctx, 1)
		first, second := g.Halves()
		b.send(ctx, first)
		b.send(ctx, second)
		return
	}
	if err == nil && res.class == classEach {
		b.each(g, res)
		return
	}
	again := sync.OnceValues(func() (time.Duration, bool) { return b.comesAgain(len(g.Items), res, err) })
	for _, a := range g.Items {
		b.answer(a, res, err, again)
	}
}

// splits reports whether a response means that something in the body was wrong.
func splits(res result) bool {
	switch res.status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return res.class == classFail || res.class == classDrop || res.class == classFallback
	}
	return false
}

func tooLarge(err error) bool {
	refused, ok := errors.AsType[*throttle.Error](err)
	return ok && refused.Reason == throttle.ReasonTooLarge
}

// newCall makes the request of a group.
func (b *batch) newCall(g group) *call {
	ids := make([]string, len(g.Items))
	for i, a := range g.Items {
		ids[i] = a.id
	}
	c := &call{url: g.Key.url, destination: g.Key.destination, id: requestID(b.settings.Pool.Pool, ids, g.Records), header: parseLines(g.Key.header)}
	body := b.settings.layout().Join(g.Records)
	c.plain = body
	var coding string
	if c.body, coding = b.compressor.Compress(body); coding != "" {
		c.header.Set("Content-Encoding", coding)
	}
	switch b.settings.Unit {
	case perMessage:
		c.cost = len(g.Items)
	case perByte:
		c.cost = max(len(c.body), 1)
	case perRequest:
		c.cost = 1
	}
	return c
}

// parseLines is the inverse of lines.
func parseLines(text string) http.Header {
	h, _ := textproto.NewReader(bufio.NewReader(strings.NewReader(text + "\r\n"))).ReadMIMEHeader() // what lines has written
	return http.Header(h)
}

// requestID is the same whenever the same messages are sent together, and differs for others: it hashes their source, their IDs and the
// sent data. IDs alone would repeat when a buffer or source restarts its counting, and a service would take the messages for known. The ID
// of a single message precedes the hash, if it is valid in a header.
func requestID(scope string, ids []string, records [][]byte) string {
	hash := sha256.New()
	add := func(part []byte) {
		_, _ = fmt.Fprintf(hash, "%d:", len(part))
		hash.Write(part)
	}
	add([]byte(scope))
	for i, id := range ids {
		add([]byte(id))
		add(records[i])
	}
	const half = sha256.Size / 2
	sum := hex.EncodeToString(hash.Sum(nil)[:half])
	if len(ids) == 1 && isVisible(ids[0]) {
		return ids[0] + "-" + sum
	}
	return sum
}

// isVisible reports whether an ID can begin a header's value.
func isVisible(id string) bool {
	return id != "" && len(id) <= 200 && !strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' })
}

// unavailability says briefly why the service could not accept a message. The platform counts failures by their text, so it has no figures.
func unavailability(res result, err error) string {
	open, isOpen := errors.AsType[*outbound.OpenError](err)
	noToken, isNoToken := errors.AsType[*outbound.TokenError](err)
	refused, isRefused := errors.AsType[*throttle.Error](err)
	switch {
	case isOpen:
		return open.Error()
	case isNoToken:
		return noToken.Error()
	case isRefused:
		return (&admission.Denied{Err: refused}).Why()
	case errors.Is(err, context.DeadlineExceeded):
		return "throttled"
	case err != nil:
		return "no request"
	case res.err != nil:
		return res.err.Error()
	}
	return statusText(res.status)
}

// retryAfter returns when to try again; 0 if unknown.
func retryAfter(res result, err error) time.Duration {
	if open, ok := errors.AsType[*outbound.OpenError](err); ok {
		return open.RetryAfter
	}
	if noToken, ok := errors.AsType[*outbound.TokenError](err); ok {
		return noToken.RetryAfter
	}
	if err != nil || res.err != nil {
		return 0
	}
	return res.retryAfter
}
