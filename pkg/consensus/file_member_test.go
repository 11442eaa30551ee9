package consensus_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A mount is the settings file of one process.
type mount struct {
	mu      sync.Mutex
	own     protocol.OwnFile
	inForce protocol.File
}

// fileOf returns a file whose limit is max per second; its hash is that of no other max.
func fileOf(limit int) protocol.File {
	return protocol.File{Name: "config.yaml", Hash: fmt.Sprintf("%08x", limit), Max: limit, Per: time.Second}
}

func mounted(limit int) *mount { return &mount{own: protocol.OwnFile{File: fileOf(limit)}} }

func (m *mount) File() protocol.OwnFile {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.own
}

func (m *mount) InForce(f protocol.File) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inForce = f
}

// update replaces the file by one with another limit.
func (m *mount) update(limit int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.own.File, m.own.Changes = fileOf(limit), m.own.Changes+1
}

// filed starts a process that was opened with the limit of its file.
func filed(t *testing.T, s driver.Store, id string, m *mount) *node {
	t.Helper()
	return limited(t, s, id, throttle.Limit{Max: m.File().Max}, 4, protocol.WithFiles(m))
}

// settled gives a pool the time to act on a change.
func settled() { time.Sleep(5 * time.Second) }

// requireLimit fails unless all have that limit, and after a while still have.
func requireLimit(t *testing.T, want float64, nodes ...*node) {
	t.Helper()
	settled()
	for range 2 {
		for _, n := range nodes {
			require.InDelta(t, want, n.perSecond(), 1e-6)
		}
		time.Sleep(20 * time.Second)
	}
}

// perSecond is the limit that a process has in force, in tokens per second.
func (n *node) perSecond() float64 {
	o := (*protocol.View)(viewOf(n)).Overview()
	return float64(o.Max) / o.Per.Seconds()
}

func viewOf(n *node) *consensus.View { v := n.m.View(); return &v }

// A file that changes in one process counts in all, also in those without the change, and the pool grants what it says.
func TestChangedFileCountsInAllProcesses(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		a, b := mounted(100), mounted(100)
		nodes := []*node{filed(t, s, "a", a), filed(t, s, "b", b), limited(t, s, "c", throttle.Limit{Max: 100}, 4)}
		requireLimit(t, 100, nodes...)
		for _, want := range []int{20, 300, 50} {
			a.update(want)
			began := time.Now()
			within(t, 10*time.Second, "the limit of the file", func() bool { return nodes[2].ceiling() == float64(want) })
			require.Less(t, time.Since(began), 10*time.Second)
			requireLimit(t, float64(want), nodes...)
			total := used(nodes, 10*time.Second)
			require.LessOrEqual(t, float64(total), float64(want)*10.11+8)
			require.GreaterOrEqual(t, float64(total), float64(want)*10*0.97)
			require.Equal(t, fileOf(want).Hash, b.inForce.Hash)
		}
	})
}

// An operator's override counts before the file, and the file before what processes were opened with.
func TestOverrideCountsBeforeTheFile(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		a := mounted(100)
		nodes := []*node{filed(t, s, "a", a), limited(t, s, "b", throttle.Limit{Max: 60}, 4)}
		requireLimit(t, 60, nodes...)
		require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: 10}))
		requireLimit(t, 10, nodes...)
		a.update(200)
		requireLimit(t, 10, nodes...)
		require.NoError(t, protocol.ClearOverride(t.Context(), s, "pool"))
		requireLimit(t, 200, nodes...)
		before, err := protocol.ClearFile(t.Context(), s, "pool")
		require.NoError(t, err)
		require.Equal(t, 200, before.Max)
		requireLimit(t, 60, nodes...)
	})
}

// Two processes with different files: whatever restarts, and however late a copy is, the older one does not come back.
func TestOlderFileDoesNotComeBack(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		a, b := mounted(100), mounted(40)
		na, nb := filed(t, s, "a", a), filed(t, s, "b", b)
		requireLimit(t, 40, na, nb) // no file has changed: the lowest counts
		a.update(80)
		requireLimit(t, 80, na, nb)

		require.NoError(t, nb.th.Close())
		nb = filed(t, s, "b", mounted(40)) // known to be older
		requireLimit(t, 80, na, nb)
		require.NoError(t, nb.th.Close())
		nc := filed(t, s, "c", mounted(30)) // unknown, while somebody has the newest
		requireLimit(t, 80, na, nc)
		require.NoError(t, nc.th.Close())
		old := mounted(100)
		nd := filed(t, s, "d", old) // the first one of a
		require.NoError(t, na.th.Close())
		requireLimit(t, 80, nd) // and nobody has the newest any more

		old.update(80) // its copy was late
		requireLimit(t, 80, nd)
		old.update(90)
		requireLimit(t, 90, nd)
		old.update(100) // back to the first one, on purpose
		requireLimit(t, 100, nd)
	})
}

// A copy that passes through an older content is late; a file that somebody changes back is not.
func TestLateCopyIsNoChange(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		a, b, c := mounted(100), mounted(100), mounted(100)
		na, nb, nc := filed(t, s, "a", a), filed(t, s, "b", b), filed(t, s, "c", c)
		settled()
		a.update(50)
		requireLimit(t, 50, na, nb, nc)
		a.update(100)
		requireLimit(t, 100, na, nb, nc)
		b.update(50) // what a had before
		requireLimit(t, 100, na, nb, nc)
		b.update(100)
		requireLimit(t, 100, na, nb, nc)
		time.Sleep(5 * time.Minute)
		c.update(50) // its copy, which has never had 50, can no longer be late
		requireLimit(t, 50, na, nb, nc)
	})
}

// A file that was changed while nobody ran counts when somebody starts with it.
func TestFileChangedWhileNobodyRan(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		a := mounted(100)
		na := filed(t, s, "a", a)
		settled()
		a.update(50)
		requireLimit(t, 50, na)
		require.NoError(t, na.th.Close())
		na, nb := filed(t, s, "a", mounted(70)), filed(t, s, "b", mounted(70))
		requireLimit(t, 70, na, nb)
	})
}

// A store that loses everything gets the file back from the processes.
func TestFileSurvivesALossOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a, b := mounted(100), mounted(100)
		na, nb := filed(t, s, "a", a), filed(t, s, "b", b)
		settled()
		a.update(50)
		requireLimit(t, 50, na, nb)
		s.wipe()
		time.Sleep(time.Minute)
		requireLimit(t, 50, na, nb)
	})
}
