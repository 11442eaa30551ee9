package protocol

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

func TestStanding(t *testing.T) {
	n := noteOf(throttle.Limit{Max: 600, Per: time.Minute}, 0, 0)
	require.Equal(t, "1 0 600 60000000 0 0", n.String(), "an idle processor says no more")
	full := Standing{
		Slots: 30, Granted: 0.83, Used: 0.5, Waiting: 7, Throttled: throttle.ReasonQuota, Tag: "a b",
		Hold:   sharing.Hold{Callers: 5, Longest: 3200 * time.Millisecond, Rate: 60},
		Frozen: 1500 * time.Millisecond, FrozenBy: driver.FreezeNewRecord,
	}
	n.standing = full
	require.Equal(t, "1 0 600 60000000 0 0 n:30 e:830000 w:7 u:500 why:quota tag:a+b f:new_record.1500 h:5.3200..60000", n.String())
	require.Equal(t, full, standingOf(n.String()))
	require.Equal(t, "quota (a b)", full.Why())
	for _, tag := range []string{"größe 1", "#", "-", "100%", "a:b", TagOthers, hashedTag("free/x"), "(x)"} {
		require.Equal(t, tag, standingOf(Note{standing: Standing{Tag: tag}}.String()).Tag)
	}
	for _, hold := range []sharing.Hold{
		{},
		{Callers: 1},
		{Callers: 2, Blocked: true},
		{Left: time.Hour},
		{Owed: time.Second},
		{Rate: .001},
		{Callers: 1_000_000_000, Longest: 24 * time.Hour, Left: 744 * time.Hour, Rate: 1e9, Owed: time.Hour},
	} {
		s := Standing{Throttled: throttle.ReasonQuota, Hold: hold}
		require.Equal(t, s, standingOf(Note{standing: s}.String()))
	}
	require.Empty(t, Note{standing: Standing{Hold: sharing.Hold{Callers: 1}}}.String(), "nothing holds callers back")
	n.standing = Standing{Slots: 30}
	require.Equal(t, n, NoteIn(n.String()), "the others read the rest")
	alone := Note{standing: Standing{Slots: 30}}
	require.Equal(t, "1 n:30", alone.String())
	require.Equal(t, Standing{Slots: 30}, standingOf("1 n:30"))
	require.Empty(t, Note{}.String())
}

// What the others need comes first: operators are told what there is room for.
func TestStandingTakesNoRoom(t *testing.T) {
	s := Standing{Slots: 1, Used: 1, Waiting: 1, Throttled: throttle.ReasonLimit, Frozen: time.Second, FrozenBy: driver.FreezeIdentity}
	for size := range wire.MaxNoteBytes + 1 {
		b := noteText(strings.Repeat("x", size))
		s.appendTo(&b)
		require.LessOrEqual(t, len(b), wire.MaxNoteBytes)
		require.Equal(t, size <= wire.MaxNoteBytes-4, strings.HasPrefix(string(b[size:]), " n:1"))
	}
}

// What is not as this release writes it is not there.
func TestStandingOfAnything(t *testing.T) {
	for _, text := range []string{
		"", "2 n:30", "1 n:-1", "1 w:x", "1 u:64001", "1 e:1000001", "1 why:<b>",
		"1 f:new_record", "1 tag:", "1 tag:%", "1 tag:%00", "1 tag:#12", "1 tag:#ABCDEF0123", "1 cap:x", "1 cap:.",
		"1 h:", "1 h:x", "1 h:-1", "1 h:x.+2..c", "1 h:.....", "1 h:9999999999999",
		"1 f:new_record.-1", "1 f:X.5", "n:30", "1 n:9999999999", "1 n:1\x00", "1 n:" + strings.Repeat("0", wire.MaxNoteBytes),
	} {
		require.Zero(t, standingOf(text), text)
	}
}

// Numbers are rounded, and held to the bounds of a note. A word without a value, or too long, is left out.
func TestWordsOfAStanding(t *testing.T) {
	why := func(h sharing.Hold) Standing { return Standing{Throttled: "limit", Hold: h} }
	of := func(n int) Standing { return Standing{Pattern: strings.Repeat("x", n)} }
	const second = time.Second
	for _, c := range []struct {
		standing Standing
		words    string
	}{
		{Standing{Slots: 2_000_000_000, Waiting: 2_000_000_000, Used: 1e9}, " n:1000000000 w:1000000000 u:64000"},
		{Standing{Granted: 0.83000001}, " e:830001"},
		{Standing{Granted: 2}, " e:1000000"},
		{Standing{Used: 0.0004}, ""},
		{Standing{Used: 0.0005}, " u:1"},
		{Standing{Frozen: second}, ""},
		{Standing{FrozenBy: "x"}, ""},
		{Standing{Frozen: time.Hour, FrozenBy: "x"}, fmt.Sprint(" f:x.", maxNoteFrozen)},
		{of(64), " of:" + strings.Repeat("x", 64)},
		{of(65), ""},
		{why(sharing.Hold{Rate: 0.0004}), " why:limit"},
		{why(sharing.Hold{Rate: 0.0006, Longest: second, Left: 2 * second, Owed: 3 * second, Tags: 4}), " why:limit h:.1000.2000.1.3000.4"},
		{why(sharing.Hold{Callers: 2e12, Rate: 2e12, Tags: 2e12}), " why:limit h:1000000000000...1000000000000..1000000000000"},
		{Standing{capped: [2]uint64{0, 10}}, " cap:.a"},
	} {
		var b noteText
		c.standing.appendTo(&b)
		require.Equal(t, c.words, string(b))
	}
	read := standingOf("1 why:limit h:1000000001..3600000.5.1000.1000000001b of:" + strings.Repeat("x", 64))
	require.Equal(t, Standing{
		Throttled: "limit", Pattern: strings.Repeat("x", 64),
		Hold: sharing.Hold{Callers: 1_000_000_000, Left: time.Hour, Rate: 0.005, Owed: second, Tags: 1_000_000_000, Blocked: true},
	}, read)
	for _, text := range []string{"1 of:%", "1 of:%ff", "1 of:" + strings.Repeat("x", 65), "1 f:x.0", "1 f:.5", "1 f:X.5"} {
		require.Zero(t, standingOf(text), text)
	}
}

// Reasons and causes are small letters and underscores, and hashes have ten digits.
func TestWordsAndHashes(t *testing.T) {
	for _, word := range []string{"_", "a", "z", "new_record"} {
		require.True(t, isWord(word), word)
	}
	for _, word := range []string{"", "`", "{", "^", "A", "-", "a b"} {
		require.False(t, isWord(word), word)
	}
	for _, digit := range "09af" {
		require.True(t, isHash(strings.Repeat(string(digit), 10)), digit)
		require.False(t, isHash(strings.Repeat(string(digit), 9)), digit)
	}
	for _, other := range "/:`gA" {
		require.False(t, isHash("00000"+string(other)+"0000"), other)
	}
	for _, s := range []Standing{{}, {Tag: "x"}, {Throttled: "quota"}} {
		require.Equal(t, string(s.Throttled), s.Why())
	}
	require.Equal(t, "quota (all others)", (&Standing{Throttled: "quota", Tag: TagOthers}).Why())
	require.Equal(t, "quota (a*)", (&Standing{Throttled: "quota", Tag: "#0123456789", Pattern: "a*"}).Why())
}

// Operators see the names of tags with a quota by name, and those of patterns. Other names may be secrets.
func TestWhichNamesAreReported(t *testing.T) {
	long := strings.Repeat("x", 64)
	var a tagging
	a.book.setQuotas(limit.Quotas{
		Tags:  map[string]limit.Quota{"acme": {}, long: {}, "ü" + long[2:]: {}},
		Match: []limit.QuotaPattern{{Tag: "a*"}, {Tag: "b*"}},
	}, 0)
	for tag, want := range map[string][2]string{
		"": {TagOthers, ""}, "acme": {"acme", ""}, long: {long, ""}, "b1": {hashedTag("b1"), "b*"}, "c": {hashedTag("c"), ""},
		"ü" + long[2:]: {hashedTag("ü" + long[2:]), ""},
	} {
		require.Equal(t, want, [2]string{a.reportedName(tag), a.reportedPattern(tag)})
	}
}

// Recent use is measured over one to two seconds.
func TestRecentUse(t *testing.T) {
	at := func(d time.Duration, used float64) FlowAt { return FlowAt{sharing.Usage{Used: used}, d} }
	var r RecentUse
	for _, c := range []struct {
		now  FlowAt
		want float64
	}{
		{at(0, 10), 0},
		{at(time.Second, 50), 0.5},
		{at(2*time.Second-1, 150), 0.75},
		{at(2*time.Second, 60), 0.1},
		{at(2500*ms, 135), 85. / 150},
		{at(3*time.Second, 20), 0},
	} {
		require.InDelta(t, c.want, r.Of(c.now, 100, time.Second), 1e-6, c.now.At)
	}
	for _, c := range []struct {
		tokens int
		per    time.Duration
	}{{0, 0}, {5, 0}, {0, time.Second}} {
		require.Zero(t, r.Of(at(9*time.Second, 1000), c.tokens, c.per))
	}
	require.False(t, math.IsNaN((&RecentUse{}).Of(FlowAt{}, 5, time.Second)))
}
