package protocol

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

const fileA, fileB, fileC = "0000000a", "0000000b", "0000000c"

// own is a file of a process after so many changes.
func own(hash string, changes int) OwnFile { return OwnFile{File: File{Hash: hash}, Changes: changes} }

// A file is proposed only after a change while the process runs, and not when it is again what it was.
func TestAChangedFileIsPending(t *testing.T) {
	var f filing
	for i, c := range []struct {
		own     OwnFile
		pending bool
		last    string
	}{
		{own(fileA, 2), false, fileA}, {own(fileB, 2), false, fileB}, {own(fileC, 3), true, fileB}, {own(fileC, 3), true, fileB}, {own(fileB, 4), false, fileB},
	} {
		f.set(time.Duration(i), c.own)
		require.Equal(t, c.pending, f.pending, i)
		require.Equal(t, c.last, f.last, i)
	}
	require.Equal(t, time.Duration(4), f.changed)
}

// The own file has the number that it had when the processor joined. A change has its number once the pool has it, and a file in force gets
// the newest one once older copies cannot come any more.
func TestTheNumberOfTheOwnFile(t *testing.T) {
	seen := File{Hash: fileB, Count: 5, Seen: []string{fileA, fileC, fileA, fileC}}
	const recorded = 10 * time.Second
	newest := filing{own: own(fileB, 0), has: true, placed: true, file: seen, recorded: recorded}
	here := newest
	here.changed = recorded + 1
	for name, c := range map[string]struct {
		f       filing
		now     time.Duration
		placed  bool
		at      int
		pending bool
	}{
		"it joins":                    {filing{own: own(fileA, 0), has: true, file: seen}, 0, true, 3, false},
		"with a file of its own":      {filing{own: own(fileA, 0), has: true}, 0, true, unplaced, false},
		"it is not known yet":         {filing{file: seen}, 0, false, 0, false},
		"it has changed since":        {filing{own: own(fileA, 0), has: true, pending: true, file: seen}, 0, false, 0, true},
		"the pool has the change":     {filing{own: own(fileB, 0), has: true, pending: true, file: seen}, 0, true, 5, false},
		"it is gone, and there is no": {filing{own: own("", 0), has: true, pending: true, placed: true}, 0, true, 0, true},
		"an older one is in force":    {filing{own: own(fileA, 0), has: true, placed: true, file: seen}, time.Hour, true, 0, false},
		"not for long":                {newest, recorded + settleFile - 1, true, 0, false},
		"for long":                    {newest, recorded + settleFile, true, 5, false},
		"but not here":                {here, recorded + settleFile, true, 0, false},
	} {
		c.f.take(&core{}, c.now, nil)
		require.Equal(t, c.placed, c.f.placed, name)
		require.Equal(t, c.at, c.f.at, name)
		require.Equal(t, c.pending, c.f.pending, name)
	}
}

// A change is late if the pool has had the file since the one before it.
func TestALateFile(t *testing.T) {
	f := filing{own: own(fileA, 1), placed: true, file: File{Hash: fileB, Count: 5, Seen: []string{fileA}}}
	for at, late := range map[int]bool{3: true, 4: false, 5: false} {
		f.at = at
		require.Equal(t, late, f.late(), at)
	}
	f.placed = false
	require.True(t, f.late(), "what it had before is older than all")
	f.own.Hash = fileC
	require.False(t, f.late(), "it is new")
}

// A processor proposes its file if it has changed, or if nobody has the one in force. Then the files of others count as older ones.
func TestWhichFileIsProposed(t *testing.T) {
	others := func(hashes ...string) (notes []Note) {
		for _, h := range hashes {
			notes = append(notes, Note{file: fileWord{hash: h}})
		}
		return notes
	}
	for name, c := range map[string]struct {
		f      filing
		others []Note
		seen   []string // nil: nothing is proposed
	}{
		"a change":                {filing{own: own(fileA, 1), pending: true, last: fileB}, others(fileC, noFile, ""), []string{fileB, fileC}},
		"the first file":          {filing{own: own(fileA, 1), pending: true}, others(fileC), []string{fileC}},
		"while nobody ran":        {filing{own: own(fileA, 0), last: fileA, file: File{Hash: fileB, Count: 1}}, others(fileC), []string{fileC, fileB}},
		"somebody has it":         {filing{own: own(fileA, 0), last: fileA, file: File{Hash: fileB, Count: 1}}, others(fileC, fileB), nil},
		"somebody may have it":    {filing{own: own(fileA, 0), last: fileA, file: File{Hash: fileB, Count: 1}}, others(fileC, ""), nil},
		"an old one":              {filing{own: own(fileA, 0), last: fileA, file: File{Hash: fileB, Count: 2, Seen: []string{fileA}}}, nil, nil},
		"nothing is in force":     {filing{own: own(fileA, 0), last: fileA}, nil, nil},
		"none":                    {filing{pending: true, last: fileB}, nil, nil},
		"of a strange pool":       {filing{own: own(fileA, 1), pending: true, unread: errors.New("strange")}, nil, nil},
		"one that cannot be kept": {filing{own: own("?", 1), pending: true}, others(fileC), nil},
	} {
		next, due := c.f.step(noted(c.others...))
		require.Equal(t, c.seen != nil, due, name)
		if due {
			require.Equal(t, File{Hash: fileA, Count: c.f.file.Count + 1, Seen: c.seen}, next, name)
		}
	}
	f := filing{own: own(fileA, 1), pending: true, last: fileB}
	pool := noted()
	pool.clock.answers = 0
	_, due := f.step(pool)
	require.False(t, due, "it knows nothing yet")
}

// A note says which file a processor has, whether it can be used, and whether a restart is needed.
func TestWhatANoteSaysOfAFile(t *testing.T) {
	fault, restart := own(fileA, 0), own(fileA, 0)
	fault.Fault, restart.Restart = "x", []string{"Max"}
	none := OwnFile{Fault: "x"}
	for name, c := range map[string]struct {
		f    filing
		want string
	}{
		"a file":              {filing{own: own(fileA, 0), last: fileA}, fileA},
		"unusable":            {filing{own: fault, last: fileA}, fileA + "!"},
		"a restart":           {filing{own: restart, last: fileA}, fileA + "r"},
		"none, as the others": {filing{own: none}, ""},
		"none":                {filing{own: none, file: File{Hash: fileB}}, noFile + "!"},
	} {
		var req request
		c.f.report(&core{}, 0, &req)
		require.Equal(t, c.want, req.note.file.String(), name)
		require.Equal(t, req.note.file, fileWordOf(c.want), name)
	}
	require.Empty(t, (&fileWord{restart: true}).String())
	for _, text := range []string{"x", "-x", fileA + "x", "!", "r"} {
		require.Zero(t, fileWordOf(text), text)
	}
}

// A change that is not late stays pending, and an older file in force moves no number of the own one.
func TestOnlyALateChangeIsOver(t *testing.T) {
	changed := filing{own: own(fileC, 1), has: true, pending: true, last: fileA, file: File{Hash: fileB, Count: 5, Seen: []string{fileA}}}
	changed.report(&core{}, 0, &request{})
	require.True(t, changed.pending)
	changed.own.Hash = fileB
	changed.report(&core{}, 0, &request{})
	require.False(t, changed.pending)
	require.Equal(t, 5, changed.at)
	same := filing{own: own(fileA, 1), has: true, placed: true, at: 3, last: fileA, file: File{Hash: fileB, Count: 5, Seen: []string{fileA}}}
	same.report(&core{}, 0, &request{})
	require.Equal(t, 3, same.at)
}

// Clearing a file goes on with the numbers of the pool, and also ends one that cannot be read. Without one nothing is saved.
func TestClearFile(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		next string
	}{
		"a file":     {`{"name":"f","hash":"0000000a","count":4}`, `{"count":5}`},
		"the last":   {`{"hash":"0000000a","count":1000000000}`, `{"count":1000000000}`},
		"no file":    {`{"count":4}`, `{"count":4}`},
		"unreadable": {`?`, `{"count":1}`},
	} {
		s := &recordStore{p: newTagPool(t, 100, acme(0, 0), 1)}
		s.p.run(time.Second)
		_, _, err := s.p.record.Save(&driver.DocumentReport{Name: fileDocument, Version: 1 << 16, Body: []byte(c.body)}, s.at())
		require.NoError(t, err, name)
		before, err := ClearFile(t.Context(), s, "pool")
		require.NoError(t, err, name)
		require.Equal(t, c.body == `{"name":"f","hash":"0000000a","count":4}`, before.Name == "f", name)
		require.Equal(t, c.next, string(recorded(&s.p.record, fileDocument).Body), name)
	}
}
