package protocol

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
)

// A digest says in a few letters how a processor is configured beside its limit, so that others notice settings that differ: a letter or
// two for each of digestParts, of a hash. Empty: a release before this one, which does not report it.
type digest string

// digestParts are the settings in a digest. Those of a limit depend on it by default, and are compared only where the limit is the same.
var digestParts = []struct {
	name    string
	letters int
	ofLimit bool
}{
	{"burst", 2, true}, {"ramp", 1, true}, {"adaptive", 1, true}, {"strict", 1, false}, {"policy", 1, false}, {"lease", 1, false}, {"onStoreLoss", 1, false},
}

// digestLetters is the alphabet; its size is a prime, so that leases of whole seconds differ.
const digestLetters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXY"

// digestOf returns the digest of a configuration.
func digestOf(cfg *ProcessorConfig, c *ceiling.Config, strict bool) digest {
	policy := "own"
	for name, known := range map[string]Policy{"fair": Fair, "even": Even} {
		if reflect.ValueOf(cfg.Policy).Pointer() == reflect.ValueOf(known).Pointer() {
			policy = name
		}
	}
	adaptive := int64(-1)
	if c.Adapts {
		adaptive = c.Reserved
	}
	var d []byte
	for i, n := range []uint64{
		hashOf(c.Burst), hashOf(c.Ramp), hashOf(adaptive), hashOf(strict), hashOf(policy), uint64(cfg.Lease.Milliseconds()), hashOf(cfg.OnStoreLoss),
	} {
		for range digestParts[i].letters {
			d = append(d, digestLetters[n%uint64(len(digestLetters))])
			n /= uint64(len(digestLetters))
		}
	}
	return digest(d)
}

func hashOf(value any) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%v", value) // never fails
	return h.Sum64()
}

// valid reports whether d is a digest as this release writes it, or empty.
func (d digest) valid() bool {
	letters := 0
	for _, p := range digestParts {
		letters += p.letters
	}
	return d == "" || len(d) == letters
}

// strict reports whether d is of a strict limit.
func (d digest) strict() bool {
	at := 0
	for _, p := range digestParts {
		if p.name == "strict" {
			return d != "" && d[at] == digestLetters[hashOf(true)%uint64(len(digestLetters))]
		}
		at += p.letters
	}
	return false
}

// differences adds the settings in which two digests differ to a list of their names, each once. same says that their limits do not.
func (d digest) differences(o digest, same bool, names []string) []string {
	if d == "" || o == "" {
		return names
	}
	at := 0
	for _, p := range digestParts {
		mine, other := d[at:at+p.letters], o[at:at+p.letters]
		if at += p.letters; mine != other && (same || !p.ofLimit) && !slices.Contains(names, p.name) {
			names = append(names, p.name)
		}
	}
	return names
}
