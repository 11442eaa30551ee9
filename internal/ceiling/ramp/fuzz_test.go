package ramp

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Any text is an error, or the one form of a state that Next goes on from.
func FuzzParseState(f *testing.F) {
	c := Config{Min: 10, Max: 20, Per: time.Second, RampUpDuration: time.Minute, Mode: GoBackN, CoolDownPeriod: time.Second, TTL: time.Hour}
	s, _ := c.Next(State{}, Step{})
	for _, st := range []Step{{Now: 5 * second, Used: 1, Offered: 2}, {Now: 5*second + 700_000, Used: 3, Offered: 3}, {Now: 99 * second}} {
		s, _ = c.Next(s, st)
		text, err := s.AppendText(nil)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Add("0 0 0 0 0 0 0 0 0 0 0 0")
	f.Add("0 0 0 0 0 0 0 0 0 0 0")
	f.Add("1 1 0 0 0 0 0 0 1 1 1000 +1000")
	f.Add(strings.Repeat("9", 300))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseState(text)
		if err != nil {
			require.Zero(t, s)
			return
		}
		again, err := s.AppendText(nil)
		require.NoError(t, err)
		require.Equal(t, text, string(again), "a state has one form")
		next, ceiling := c.Next(s, Step{Now: s.At + 1_234_567, Used: 1, Offered: 1})
		requireSound(t, c, next, ceiling)
	})
}

// FuzzNext makes steps of the bytes, one of 16 bytes each, after 8 for the Config: the
// ceiling stays within its bounds, and a step in two gives the same as one.
func FuzzNext(f *testing.F) {
	f.Add([]byte("\x00\x10\x20\x30\x40\x50\x60\x70"))
	f.Add([]byte("\x03\x01\x02\x01\x32\x32\x01\x01" + "\x00\x0f\x42\x40\x00\x00\x00\x10\x00\x00\x00\x20\x00\x00\x00\x00"))
	f.Add([]byte("\x02\x01\x02\x01\x64\x00\x00\x00" + strings.Repeat("\x00\x1e\x84\x80\x00\x00\x00\x10\x00\x00\x00\x10\x00\x00\x00\x09", 6)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var head [8]byte
		b = b[copy(head[:], b):]
		c := fuzzedConfig(head)
		require.NoError(t, c.Validate())
		var s State
		for len(b) >= 16 && len(b) < 16*200 {
			st := Step{
				Now:     s.At + int64(binary.BigEndian.Uint32(b)),
				Used:    int64(binary.BigEndian.Uint32(b[4:])),
				Offered: int64(binary.BigEndian.Uint32(b[8:])),
			}
			cut := st
			cut.Now = s.At + (st.Now-s.At)*int64(b[12])/math.MaxUint8
			if b[13] == 1 {
				head[0]++
				c = fuzzedConfig(head) // another configuration from now on
			}
			st.Empty = b[14] == 1
			st.Silence = int64(b[15]) * second
			b = b[16:]
			next, ceiling := c.Next(s, st)
			requireSound(t, c, next, ceiling)
			if !st.Empty && st.Silence == 0 {
				half, _ := c.Next(s, cut)
				half, _ = c.Next(half, st)
				// From nothing the ramp begins at the first step.
				if s.known() {
					require.Equal(t, next, half)
				}
			}
			s = next
		}
	})
}

// fuzzedConfig makes a valid Config of any bytes.
func fuzzedConfig(b [8]byte) Config {
	c := Config{
		Mode: Mode(b[0] % 4), Min: 1 + int64(b[1]), Per: time.Second << (b[7] % 8),
		RampUpDuration: time.Millisecond << (b[3] % 30), TTL: time.Minute, ResumedRampUp: b[0]&4 != 0,
	}
	c.Max = c.Min + int64(b[2])<<(b[7]%16)
	if c.Mode == OnlyIfUsed || c.Mode == GoBackN {
		c.ThresholdPercentage = int64(b[4]) % 101
	}
	if c.Mode == GoBackN {
		c.RampDownPercentage, c.CoolDownPeriod = int64(b[5])%101, time.Second+time.Duration(b[6])*100*time.Millisecond
	}
	return c
}
