package protocol

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// poolInMemory is a store with a pool "p" and one processor in it.
func poolInMemory(t *testing.T) *memstore.Store {
	t.Helper()
	s := memstore.New()
	_, err := s.Sync(t.Context(), NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1").Request(0, 1, Observation{}))
	require.NoError(t, err)
	return s
}

// onRecord is a document of the pool "p".
func onRecord(t *testing.T, s *memstore.Store, name string) driver.Document {
	t.Helper()
	docs, _, err := s.Load(t.Context(), "p")
	require.NoError(t, err)
	for _, d := range docs {
		if d.Name == name {
			return d
		}
	}
	return driver.Document{}
}

// unreadableDocument saves a document that this release cannot read.
func unreadableDocument(t *testing.T, s *memstore.Store, name string) driver.Version {
	t.Helper()
	base := onRecord(t, s, name).Version
	d := driver.DocumentReport{Name: name, Version: driver.NextVersion(base, 1), Base: base, Body: []byte(`{"of":"a later release"}`)}
	_, err := s.Save(t.Context(), "p", d)
	require.NoError(t, err)
	return d.Version
}

// heard returns what is pushed.
func heard(t *testing.T, s *memstore.Store) (news func() []Notification) {
	t.Helper()
	var texts [][]byte
	stop, err := s.Watch(t.Context(), "p", func(text []byte) { texts = append(texts, text) })
	require.NoError(t, err)
	t.Cleanup(stop)
	return func() (list []Notification) {
		synctest.Wait()
		for _, text := range texts {
			n, err := ParseNotification(text)
			require.NoError(t, err)
			list = append(list, n)
		}
		return list
	}
}

// Of two pauses of a tag the one that ends later counts, whatever else is paused. What changes nothing is not pushed.
func TestOfTwoPausesTheLaterCounts(t *testing.T) {
	const minute, hour = time.Minute, time.Hour
	for _, c := range []struct {
		tag           string
		before, saved time.Duration // 0: without an end
		counts        bool
	}{
		{"", 0, 0, false},
		{"", 0, minute, false},
		{"", minute, 0, true},
		{"", minute, hour, true},
		{"", hour, hour, true},
		{"", hour, minute, false},
		{"x", hour, minute, true},
		{"x", 0, 0, true},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := poolInMemory(t)
				save := func(p limit.Paused, d time.Duration) driver.Document {
					if d > 0 {
						p.Until = time.Now().Add(d)
					}
					require.NoError(t, SavePause(t.Context(), s, "p", p))
					return onRecord(t, s, pauseDocument)
				}
				save(limit.Paused{}, c.before)
				news := heard(t, s)
				doc := save(limit.Paused{Tag: c.tag, Reason: "r", By: "b"}, c.saved)
				n, err := parsePauseList(doc.Body)
				require.NoError(t, err)
				e := n.entries[len(n.entries)-1]
				require.Equal(t, c.counts, e.reason == "r" && e.by == "b" && e.left == c.saved)
				require.Equal(t, c.counts, len(news()) == 1)
				if c.counts {
					require.Equal(t, doc.Version, news()[0].Version)
					require.Equal(t, &n, news()[0].Pauses)
				}
			})
		})
	}
}

// A resumption takes effect only if there is such a pause.
func TestWhatAResumptionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := poolInMemory(t)
		for _, tag := range []string{"", "x"} {
			require.NoError(t, SavePause(t.Context(), s, "p", limit.Paused{Tag: tag}))
		}
		before, news := onRecord(t, s, pauseDocument), heard(t, s)
		require.NoError(t, ClearPause(t.Context(), s, "p", "y"))
		require.Equal(t, before, onRecord(t, s, pauseDocument))
		require.Empty(t, news())
		require.NoError(t, ClearPause(t.Context(), s, "p", ""))
		list, err := LoadPauses(t.Context(), s, "p")
		require.NoError(t, err)
		require.Equal(t, []limit.Paused{{Tag: "x"}}, list)
		require.Len(t, news(), 1)
		require.Equal(t, onRecord(t, s, pauseDocument).Version, news()[0].Pauses.resumed)
		require.ErrorContains(t, ClearPause(t.Context(), s, "p", "\n"), "tag of the pause")
		require.ErrorIs(t, ClearPause(t.Context(), s, "q", ""), driver.ErrNoPool)
		require.ErrorIs(t, SavePause(t.Context(), s, "q", limit.Paused{}), driver.ErrNoPool)
		require.ErrorContains(t, SavePause(t.Context(), s, "p", limit.Paused{Until: time.Now()}), "end of the pause")
		_, err = LoadPauses(t.Context(), s, "q")
		require.ErrorIs(t, err, driver.ErrNoPool)
	})
}

// A change for the whole pool replaces what cannot be read, and one of a tag does not. The pause of the whole pool always has room.
func TestTheWholePoolCanAlwaysBePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := poolInMemory(t)
		for i := range 15 {
			require.NoError(t, SavePause(t.Context(), s, "p", limit.Paused{Tag: fmt.Sprint(i)}))
		}
		require.ErrorContains(t, SavePause(t.Context(), s, "p", limit.Paused{Tag: "x"}), "no more fit")
		require.NoError(t, SavePause(t.Context(), s, "p", limit.Paused{}))
		list, err := LoadPauses(t.Context(), s, "p")
		require.NoError(t, err)
		require.Len(t, list, 16)

		for name, change := range map[string]func(tag string) error{
			"pause":  func(tag string) error { return SavePause(t.Context(), s, "p", limit.Paused{Tag: tag}) },
			"resume": func(tag string) error { return ClearPause(t.Context(), s, "p", tag) },
		} {
			version := unreadableDocument(t, s, pauseDocument)
			_, err = LoadPauses(t.Context(), s, "p")
			require.Error(t, err, name)
			require.ErrorContains(t, change("x"), "a change for the whole pool", name)
			require.Equal(t, version, onRecord(t, s, pauseDocument).Version, name)
			require.NoError(t, change(""), name)
			list, err = LoadPauses(t.Context(), s, "p")
			require.NoError(t, err)
			require.Equal(t, name == "pause", len(list) == 1, name)
		}
	})
}
