package envoyrls

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

const (
	maxHits        = 1_000_000_000 // more counts as so many
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

// read reads a request. Where Envoy gets an error it lets the request pass by default: so what a client has a say in, such as the length of a
// header and so of a tag, is no reason for one.
func (s *service) read(r *ratelimit.RateLimitRequest) (c call, err error) {
	all := r.GetDescriptors()
	if len(all) == 0 || len(all) > maxDescriptors {
		return c, fmt.Errorf("descriptors has %d items, allowed: 1 to %d", len(all), maxDescriptors)
	}
	for _, d := range all {
		s.count(&c, r, d, s.tag(d))
	}
	return c, nil
}

// count adds what one descriptor says.
func (s *service) count(c *call, r *ratelimit.RateLimitRequest, d *descriptor.RateLimitDescriptor, tag string) {
	tags := &c.tags
	whole, own := int(min(r.GetHitsAddend(), maxHits)), int(min(d.GetHitsAddend().GetValue(), maxHits))
	given := d.GetHitsAddend() != nil
	switch {
	case d.GetIsNegativeHits():
		n := own
		if !given {
			n = max(whole, 1)
		}
		c.back, tags = max(c.back, n), &c.backTags
	case given && own == 0:
		c.probe = true
		s.probed.note(shapeOf(r, d), time.Now())
	case given && !s.askOnly:
		c.cost = max(c.cost, own)
	case given:
		c.ask = max(c.ask, own)
	case whole > 0 && !s.askOnly && s.probed.lately(shapeOf(r, d), time.Now()):
		c.cost = max(c.cost, whole)
	default:
		c.ask = max(c.ask, whole, 1)
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
