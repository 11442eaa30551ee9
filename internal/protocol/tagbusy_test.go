package protocol

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

func TestPackedRates(t *testing.T) {
	for _, rate := range []float64{0, 1e-6, 1.0 / 60, 0.5, 1, 3, 100, 12345.678, 1e9, 5e11} {
		got := unpackRate(packRate(rate))
		require.InDelta(t, rate, got, rate/1000, rate)
		require.Equal(t, packRate(rate), packRate(got), "packed again it is the same")
	}
	require.Zero(t, packRate(math.NaN()))
	require.Zero(t, packRate(-1))
	require.InDelta(t, 5.5e11, unpackRate(packRate(math.Inf(1))), 1e10, "the highest")
	require.Zero(t, packRate(1e-12), "next to nothing")
	last := 0.0
	for code := range math.MaxUint16 {
		rate := unpackRate(uint16(code))
		if rate < last {
			require.GreaterOrEqual(t, rate, last)
		}
		last = rate
	}
}

// Reserved tags are named before limited ones, and those before the rest, whatever they ask for.
func TestBusyNamesReservedTagsFirst(t *testing.T) {
	var tags []busyTag
	for i := range uint64(40) {
		tags = append(tags,
			busyTag{key: 3000 + i, rate: 1000},
			busyTag{key: 2000 + i, rate: 10, limited: true},
			busyTag{key: 1000 + i, rate: float64(1 + i), reserved: 1},
		)
	}
	text := packBusy(7, 0xabcd1234, 300, tags)
	require.Len(t, text, 13+48*8)
	require.LessOrEqual(t, len(text), wire.MaxBusyBytes)
	r, ok := unpackBusy(text)
	require.True(t, ok)
	require.Equal(t, byte(7), r.turn)
	require.Equal(t, uint32(0xabcd1234), r.hash)
	require.InDelta(t, 300, r.unchanged, 0.3)
	require.Len(t, r.tags, 48)
	for i, b := range r.tags {
		if i < 40 {
			require.Equal(t, fairtags.Busy{Key: uint64(1039 - i), Rate: float64(40 - i)}, b)
		} else {
			require.Equal(t, fairtags.Busy{Key: uint64(2000 + i - 40), Rate: 10}, b)
		}
	}
	require.InDelta(t, 32*10+40*1000, r.rest, 50)
	require.Zero(t, r.restReserved)
}

// What is used is told as a part of the demand, and never above it.
func TestBusyTellsWhatIsUsed(t *testing.T) {
	tags := []busyTag{
		{key: 1, rate: 1000, used: 400, reserved: 1},
		{key: 2, rate: 900, used: 1200, reserved: 1},
		{key: 3, rate: 800, reserved: 1},
		{key: 4, rate: 700, used: math.NaN(), reserved: 1},
	}
	for i := range uint64(maxBusyTags) {
		tags = append(tags, busyTag{key: 100 + i, rate: 10, used: 5})
	}
	r, ok := unpackBusy(packBusy(0, 0, 0, tags))
	require.True(t, ok)
	require.InDelta(t, 400, r.uses[0], 1000.0/127)
	require.InDelta(t, 900, r.uses[1], 8)
	require.Zero(t, r.uses[2])
	require.Zero(t, r.uses[3])
	require.InDelta(t, 5, r.uses[4], 10.0/127)
	require.InDelta(t, 20, r.restUsed, 40.0/127, "of the four that have no room")
	for i := range tags {
		tags[i].rate, tags[i].reserved = 4, 3
	}
	r, ok = unpackBusy(packBusy(0, 0, 0, tags))
	require.True(t, ok)
	require.InDelta(t, 16, r.rest, 0.1)
	require.InDelta(t, 12, r.restReserved, 0.1)
}

func TestBusyKeyOfOtherTagsIsItsOwn(t *testing.T) {
	require.Zero(t, busyKey(0))
	require.Equal(t, uint64(1), busyKey(5), "no other key is told as 0")
	require.Equal(t, uint64(0xabcdef0123), busyKey(0xabcdef0123456789))
}

// Whatever another processor tells of its tags, it is read as numbers within bounds, or not at all; and written again it is the same.
func FuzzUnpackBusy(f *testing.F) {
	good := packBusy(1, 2, 3, []busyTag{{key: 1 << 30, rate: 3}})
	for _, bad := range []string{"", "x", good[:len(good)-1], good + "x", "\x01" + good[1:], string(make([]byte, 13)), good + string(make([]byte, 8*48))} {
		_, ok := unpackBusy(bad)
		require.False(f, ok, "%q", bad)
		f.Add(bad)
	}
	f.Add(good)
	f.Add(packBusy(1, 2, 3, nil))
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		b := append(make([]byte, 0, wire.MaxBusyBytes), busyForm)
		for range busyHead - 1 + rng.IntN(maxBusyTags)*busyEntry {
			b = append(b, byte(rng.Uint32()))
		}
		f.Add(string(b))
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := unpackBusy(text)
		if !ok {
			require.Zero(t, r)
			return
		}
		require.LessOrEqual(t, len(r.tags), maxBusyTags)
		require.Len(t, r.uses, len(r.tags))
		require.Len(t, r.slow, len(r.tags))
		rates := []float64{r.rest, r.restReserved, r.unchanged, r.restUsed}
		for i, tag := range r.tags {
			rates = append(rates, tag.Rate, r.uses[i])
		}
		for _, rate := range rates {
			require.False(t, math.IsNaN(rate) || math.IsInf(rate, 0))
			require.GreaterOrEqual(t, rate, 0.0)
		}
		require.LessOrEqual(t, r.restReserved, r.rest)
		require.LessOrEqual(t, r.restUsed, r.rest)
		again, ok := unpackBusy(text)
		require.True(t, ok)
		require.Equal(t, r, again)
	})
}

func TestPackedParts(t *testing.T) {
	for _, c := range []struct {
		used, rate float64
		want       byte
	}{{1, 2, 64}, {3, 2, 127}, {0, 2, 0}, {-1, 2, 0}, {1, 0, 0}, {1, -1, 0}, {math.NaN(), 2, 0}, {1, math.NaN(), 0}} {
		require.Equal(t, c.want, packPart(c.used, c.rate), c)
	}
}
