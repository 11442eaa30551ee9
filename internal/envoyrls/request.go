package envoyrls

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

const (
	maxHits        = 1_000_000_000
	maxTag         = 256
	maxDescriptors = 64
)

// A call is what a request says. Of several descriptors the largest number of a kind counts.
type call struct {
	// tags are those of the descriptors that ask or report, each once.
	tags []string
	// ask is how many tokens the request wants before it is made; 0: none.
	ask int
	// cost is how many tokens a request has used, or will; 0: none are reported.
	cost int
	// probe tells that there are descriptors with zero hits.
	probe bool
	// back is how many tokens backTags give back.
	back     int
	backTags []string
}

// read reads a request.
func (s *service) read(r *ratelimit.RateLimitRequest) (c call, err error) {
	all := r.GetDescriptors()
	if len(all) == 0 || len(all) > maxDescriptors {
		return c, fmt.Errorf("descriptors has %d items, allowed: 1 to %d", len(all), maxDescriptors)
	}
	for i, d := range all {
		if n := max(d.GetHitsAddend().GetValue(), uint64(r.GetHitsAddend())); n > maxHits {
			return c, fmt.Errorf("descriptors[%d].hits_addend is %d, allowed: 0 to %d", i, n, maxHits)
		}
		tag := s.tag(d)
		if len(tag) > maxTag || !utf8.ValidString(tag) || strings.ContainsFunc(tag, unicode.IsControl) {
			return c, fmt.Errorf("descriptors[%d] gives the tag %.40q, allowed: up to %d bytes of text without control characters", i, tag, maxTag)
		}
		s.count(&c, r, d, tag)
	}
	return c, nil
}

// count adds what one descriptor says.
func (s *service) count(c *call, r *ratelimit.RateLimitRequest, d *descriptor.RateLimitDescriptor, tag string) {
	tags := &c.tags
	own, whole := d.GetHitsAddend(), r.GetHitsAddend()
	switch {
	case d.GetIsNegativeHits():
		n := max(int(whole), 1)
		if own != nil {
			n = int(own.GetValue())
		}
		c.back, tags = max(c.back, n), &c.backTags
	case own != nil && own.GetValue() == 0:
		c.probe = true
		s.probed.note(shapeOf(r, d), time.Now())
	case own != nil && !s.askOnly:
		c.cost = max(c.cost, int(own.GetValue()))
	case own != nil:
		c.ask = max(c.ask, int(own.GetValue()))
	case whole > 0 && !s.askOnly && s.probed.lately(shapeOf(r, d), time.Now()):
		c.cost = max(c.cost, int(whole))
	default:
		c.ask = max(c.ask, int(whole), 1)
	}
	if tag != "" && !slices.Contains(*tags, tag) {
		*tags = append(*tags, tag)
	}
}

// tag returns the tag of a descriptor; empty for none.
func (s *service) tag(d *descriptor.RateLimitDescriptor) string {
	var values []string
	for _, e := range d.GetEntries() {
		switch s.key {
		case "":
			values = append(values, e.GetValue())
		case e.GetKey():
			return e.GetValue()
		}
	}
	return strings.Join(values, "/")
}

// shapeOf tells what the descriptors of one action of a route have in common: the domain and the keys, without the values.
func shapeOf(r *ratelimit.RateLimitRequest, d *descriptor.RateLimitDescriptor) (of shape) {
	h := sha256.New()
	part := func(text string) {
		_ = binary.Write(h, binary.BigEndian, uint64(len(text))) // never fails
		_, _ = io.WriteString(h, text)
	}
	part(r.GetDomain())
	for _, e := range d.GetEntries() {
		part(e.GetKey())
	}
	h.Sum(of[:0])
	return of
}
