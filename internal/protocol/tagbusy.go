package protocol

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
)

// RosterRow.Busy has a few bytes in which a processor reports its tags to the others. A processor without it knows no quotas.
//
//	1  the form, busyForm
//	1  a number that differs from that of the previous request: a row whose number stays is silent
//	2  the demand of the tags that are not named, and
//	2  how much of it is reserved
//	4  a hash of its configured quotas
//	2  the sum of the configured reserved rates, without the tags that the document "quota" changes
//	1  the part of the demand of unnamed tags that is used
//	8  for each named tag: the first 5 bytes of its key, 2 for its demand, and 1 with the part of its demand that is used, and a bit that is
//	   set if the called service refuses its calls, so that it asks for no more
//
// Rates are in tokens per second; see packRate. Parts are in 1/127. Use is for operators alone: the policy goes by demand.
const (
	busyForm  = 2 // 1: of processors that do not know Draw.Pattern
	busyHead  = 13
	busyEntry = 8
	// maxBusyTags is how many tags are named.
	maxBusyTags = 48
	// busyKeyBits is how many bits of a key are reported.
	busyKeyBits = 40
)

// A busyTag is one of a processor's own tags, as it is reported.
type busyTag struct {
	key uint64 // of busyKey
	// rate is the demand, reserved the part of it within the tag's reserved rate, and used the part that is granted.
	rate, reserved, used float64
	// limited says that it has a total or a budget, slow that the called service limits it here, to rate.
	limited, slow bool
}

// A busyReport is the decoded form of RosterRow.Busy.
type busyReport struct {
	turn byte
	hash uint32
	// unchanged is the sum of the configured reserved rates, without the changed tags.
	unchanged float64
	// The keys are those of busyKey.
	tags               []fairtags.Busy
	slow               []bool    // of tags
	uses               []float64 // of tags: what each uses
	rest, restReserved float64
	restUsed           float64
}

// busyKey returns the reported bits of a key. No key but 0, which is all other tags, gives 0.
func busyKey(key uint64) uint64 {
	if short := key >> (64 - busyKeyBits); short > 0 || key == 0 {
		return short
	}
	return 1
}

// packBusy returns the text of Report.Busy. Reserved tags come first, then limited ones, each by falling demand; the rest is reported as a
// sum.
func packBusy(turn byte, hash uint32, unchanged float64, tags []busyTag) string {
	order := slices.Clone(tags)
	rank := func(t busyTag) int {
		switch {
		case t.reserved > 0:
			return 0
		case t.limited || t.slow:
			return 1
		}
		return 2
	}
	slices.SortFunc(order, func(a, b busyTag) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.rate, a.rate), cmp.Compare(a.key, b.key))
	})
	named := order[:min(len(order), maxBusyTags)]
	var rest busyTag
	for _, t := range order[len(named):] {
		rest.rate, rest.reserved, rest.used = rest.rate+t.rate, rest.reserved+t.reserved, rest.used+t.used
	}
	b := append(make([]byte, 0, busyHead+maxBusyTags*busyEntry), busyForm, turn)
	b = binary.BigEndian.AppendUint16(b, packRate(rest.rate))
	b = binary.BigEndian.AppendUint16(b, packRate(rest.reserved))
	b = binary.BigEndian.AppendUint32(b, hash)
	b = binary.BigEndian.AppendUint16(b, packRate(unchanged))
	b = append(b, packPart(rest.used, rest.rate))
	for _, t := range named {
		var key [8]byte
		binary.BigEndian.PutUint64(key[:], t.key)
		b = append(b, key[8-busyKeyBits/8:]...)
		part := packPart(t.used, t.rate)
		if t.slow {
			part |= slowBit
		}
		b = append(binary.BigEndian.AppendUint16(b, packRate(t.rate)), part)
	}
	return string(b)
}

// unpackBusy reads what packBusy writes; ok is false for anything else. No text makes it return
// more than maxBusyTags, or a rate that is no number.
func unpackBusy(text string) (r busyReport, ok bool) {
	b := []byte(text)
	if len(b) < busyHead || b[0] != busyForm || (len(b)-busyHead)%busyEntry != 0 || (len(b)-busyHead)/busyEntry > maxBusyTags {
		return busyReport{}, false
	}
	r.turn, r.hash = b[1], binary.BigEndian.Uint32(b[6:])
	r.rest = unpackRate(binary.BigEndian.Uint16(b[2:]))
	r.restReserved = min(unpackRate(binary.BigEndian.Uint16(b[4:])), r.rest)
	r.unchanged = unpackRate(binary.BigEndian.Uint16(b[10:]))
	r.restUsed = unpackPart(b[12], r.rest)
	for b = b[busyHead:]; len(b) > 0; b = b[busyEntry:] {
		var key [8]byte
		copy(key[8-busyKeyBits/8:], b)
		rate := unpackRate(binary.BigEndian.Uint16(b[busyKeyBits/8:]))
		r.tags = append(r.tags, fairtags.Busy{Key: binary.BigEndian.Uint64(key[:]), Rate: rate})
		r.uses = append(r.uses, unpackPart(b[busyEntry-1]&^slowBit, rate))
		r.slow = append(r.slow, b[busyEntry-1]&slowBit != 0)
	}
	return r, true
}

// A packed rate has 6 bits of exponent and 10 of fraction: 0, or 6e-8 to 1e12 tokens per
// second, with an error below 0.1 %.
const (
	rateFraction = 10 // bits
	rateLowest   = -24
	rateHighest  = 39
)

// packRate packs a rate in tokens per second. A rate above the highest is packed as the highest.
func packRate(rate float64) uint16 {
	if !(rate > 0) { // not a number as well
		return 0
	}
	fraction, exponent := math.Frexp(min(rate, math.Ldexp(1, rateHighest))) // 0.5 to 1
	steps := int(math.Round((2*fraction - 1) * (1 << rateFraction)))
	code := (exponent-1-rateLowest)<<rateFraction + steps // a full fraction carries over
	return uint16(max(0, min(code, math.MaxUint16)))
}

// unpackRate is the inverse of packRate.
func unpackRate(code uint16) float64 {
	if code == 0 {
		return 0
	}
	fraction := 1 + float64(code&(1<<rateFraction-1))/(1<<rateFraction)
	return math.Ldexp(fraction, int(code>>rateFraction)+rateLowest)
}

// A packed part has 7 bits, below slowBit.
const (
	slowBit = 0x80
	maxPart = slowBit - 1
)

// packPart packs the used part of a rate, in 1/127 of it. NaN counts as nothing.
func packPart(used, rate float64) byte {
	if !(used > 0) || !(rate > 0) {
		return 0
	}
	return byte(math.Round(maxPart * min(used/rate, 1)))
}

// unpackPart is the inverse of packPart.
func unpackPart(part byte, rate float64) float64 { return rate * float64(min(part, maxPart)) / maxPart }
