package why

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Files that differ, that cannot be used or that need a restart are named, with the pods that have them, whatever holds callers back.
func TestFilesAreExplained(t *testing.T) {
	const newest, older = "1f3c5d7e", "00000001"
	rows := func(words ...string) (list []driver.RosterRow) {
		for i, w := range words {
			list = append(list, driver.RosterRow{ID: string(rune('a' + i)), Note: "1 0 100 1000000 0 0 " + w, Left: 10 * time.Second, Claim: driver.Whole / 8})
		}
		return list
	}
	file := protocol.File{Name: "config.yaml", Hash: newest, Max: 50, Per: time.Second, Count: 1}
	for want, c := range map[string]struct {
		file protocol.File
		rows []driver.RosterRow
	}{
		"nothing holds callers back": {file, rows("y:"+newest, "y:"+newest, "y:-")},
		"nothing holds callers back; the settings files of pods differ: config.yaml@1f3c5d7e counts for all, and b has another one": {
			file, rows("y:"+newest, "y:"+older),
		},
		"nothing holds callers back; the settings files of pods differ: b and c have another one than others": {
			protocol.File{}, rows("y:"+newest, "y:"+older, "y:"+older),
		},
		"nothing holds callers back; the settings of config.yaml@1f3c5d7e count, but no pod has that file any more: numathrottle file clear --pool p": {
			file, rows("y:"+older, ""),
		},
		"nothing holds callers back; a has a settings file that cannot be used, as the log says: what was in force before stays": {
			file, rows("y:"+newest+"!", "y:"+newest),
		},
		"nothing holds callers back; a, b, c and others need a restart for some settings of the file, as the log says": {
			protocol.File{}, rows("y:"+newest+"r", "y:"+newest+"r", "y:"+newest+"r", "y:"+newest+"r"),
		},
		"the limit of 50/s, by the changed settings file config.yaml@1f3c5d7e, is used in full; 7 callers wait": {
			file, rows("y:" + newest + " w:7 u:500 why:limit h:7"),
		},
	} {
		v := protocol.View{Pool: "p", Roster: c.rows, Files: protocol.FileView{InForce: c.file}}
		o := v.Overview()
		s := Pool(&o, time.Now())
		require.Equal(t, want, Explain(s).Sentence)
	}
}
