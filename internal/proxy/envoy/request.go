package envoy

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
	maxHits        = 1_000_000_000 // higher values count as this
	maxDescriptors = 64
	maxEntries     = 1024 // of all descriptors together
)

// A call is a parsed request. If several descriptors give a number of the same kind, the largest counts.
type call struct {
	// tags are the tags of the descriptors that ask or report, without duplicates.
	tags []string
	// ask is how many tokens the request needs before it is made; 0: none.
	ask int
	// cost is how many tokens the request used, or will use; 0: none reported.
	cost int
	// probe reports whether there are descriptors with zero hits.
	probe bool
	// back is the number of tokens to give back for backTags.
	back     int
	backTags []string
}

// read parses a request. On an error Envoy lets the request pass by default. So values under the client's influence, such as the length of
// a header and so of a tag, cause no error.
func (s *service) read(r *ratelimit.RateLimitRequest) (c call, err error) {
	all := r.GetDescriptors()
	switch {
	case len(all) == 0:
		return c, fmt.Errorf("descriptors has 0 items, allowed: 1 to %d", maxDescriptors)
	case len(all) > maxDescriptors:
		return c, fmt.Errorf("descriptors has too many items, allowed: 1 to %d", maxDescriptors)
	case len(all[0].GetEntries()) > maxEntries:
		return c, fmt.Errorf("entries of all descriptors has too many items, allowed: %d", maxEntries)
	}
	for _, d := range all {
		s.count(&c, r, d, s.tag(d))
	}
	return c, nil
}

// count adds the numbers of one descriptor.
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

// shapeOf hashes the common part of the descriptors of one action of a route: the domain and the keys, without the values.
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
