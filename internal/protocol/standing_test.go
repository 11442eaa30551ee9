package protocol

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
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
