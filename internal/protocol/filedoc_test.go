package protocol

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// What is read from a document of a file is within the bounds, and is the same when it is written and read again.
func FuzzParseFile(f *testing.F) {
	for _, body := range []string{
		`{"name":"a.yaml","hash":"0123abcd","max":600,"per":"1m","logLevel":"debug","count":3,"seen":["00000000","ffffffff"]}`, `{"count":0}`, `{}`, ``,
		`{"hash":"0123abcd","quotas":{"tags":{"acme":{"reserved":5}}},"prices":{"a": 1},"count":1}`, `{"count":-1}`, `{"hash":"x","count":1}`,
		`{"max":5,"per":"0s","count":1}`, `{"seen":["x"],"count":1}`, `{"count":1,"shape":2}`, `{"logLevel":"loud","count":1}`, `[]`, `null`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		file, err := parseFile(body)
		if err != nil {
			require.Zero(t, file)
			require.Less(t, len(err.Error()), 1000)
			return
		}
		require.NoError(t, file.Validate())
		written, err := file.body()
		if err != nil {
			return // what is written at length is larger than a document
		}
		again, err := parseFile(written)
		require.NoError(t, err)
		same, err := again.body()
		require.NoError(t, err)
		require.Equal(t, string(written), string(same))
	})
}

// Each field of a file is bounded, in what is written and in what is read.
func TestAFileIsWithinItsBounds(t *testing.T) {
	hashes := func(n int) []string { return slices.Repeat([]string{"89abcdef"}, n) }
	for field, files := range map[string][]File{
		"": {
			{}, {Name: strings.Repeat("x", 64), Hash: "0123abcd", Max: 5, Per: time.Minute, LogLevel: "warn", Count: maxFiles, Seen: hashes(maxSeen)},
		},
		"Max":      {{Max: -1}},
		"Name":     {{Name: strings.Repeat("x", 65)}, {Name: "\x00"}},
		"Hash":     {{Hash: "0123abc"}, {Hash: "0123abcg"}},
		"LogLevel": {{LogLevel: "loud"}},
		"Count":    {{Count: -1}, {Count: maxFiles + 1}},
		"Seen":     {{Seen: hashes(maxSeen + 1)}, {Seen: []string{"x"}}},
	} {
		for _, f := range files {
			body, err := f.body()
			if field == "" {
				require.NoError(t, err)
				back, err := parseFile(body)
				require.NoError(t, err)
				require.Equal(t, f, back)
				continue
			}
			bad := (*driver.RequestError)(nil)
			require.ErrorAs(t, err, &bad)
			require.Equal(t, field, strings.TrimSuffix(bad.Field, " of the file"))
		}
	}
	for _, body := range []string{`{"per":"0s","count":1}`, `{"per":"x","count":1}`, `{"count":-1}`} {
		file, err := parseFile([]byte(body))
		require.Error(t, err, body)
		require.Zero(t, file)
	}
}

// A file fits if its document does with all that may be in it beside the settings.
func TestAFileFits(t *testing.T) {
	prices := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n) + `"`) }
	body, err := File{Prices: prices(0)}.body()
	require.NoError(t, err)
	room := wire.MaxDocumentBytes - len(body)
	_, err = File{Prices: prices(room)}.body()
	require.NoError(t, err)
	_, err = File{Prices: prices(room + 1)}.body()
	require.ErrorContains(t, err, "bytes of settings")
	require.True(t, File{Prices: prices(room / 2)}.Fits())
	require.False(t, File{Prices: prices(room)}.Fits(), "there is no room for earlier files")
}

// A pool numbers its files. Those that others have and the pool has not had come before all, each once.
func TestFilesHaveNumbers(t *testing.T) {
	f := File{Hash: "c", Count: 7, Seen: []string{"a", "b", "a"}}
	for hash, want := range map[string]int{"a": 6, "b": 5, "c": 7} {
		number, ok := f.numberOf(hash)
		require.True(t, ok)
		require.Equal(t, want, number, hash)
	}
	_, ok := f.numberOf("d")
	require.False(t, ok)
	next := f.followedBy(File{Hash: "n"}, []string{"a", "n", "x", "x", "c", "y"})
	require.Equal(t, File{Hash: "n", Count: 8, Seen: []string{"x", "y", "a", "b", "a", "c"}}, next)
	require.Equal(t, File{Hash: "n", Count: 1}, (&File{}).followedBy(File{Hash: "n"}, nil))
	f.Seen = slices.Repeat([]string{"s"}, maxSeen)
	next = f.followedBy(File{Hash: "n"}, []string{"x"})
	require.Equal(t, append(slices.Repeat([]string{"s"}, maxSeen-1), "c"), next.Seen)
}

// Debt is forgiven once for each new ID that comes after the first answer.
func TestDebtIsForgivenOnce(t *testing.T) {
	var f forgiving
	for i, c := range []struct {
		id    string
		times int
	}{{"old", 0}, {"old", 0}, {"new", 1}, {"", 1}, {"newer", 2}, {strings.Repeat("x", maxForgivenessID+1), 2}, {strings.Repeat("x", maxForgivenessID), 3}} {
		doc := driver.Document{}
		if c.id != "" {
			doc = driver.Document{Name: debtDocument, Version: driver.Version(i + 1), Body: []byte(`{"id":"` + c.id + `"}`)}
		}
		f.take(doc)
		require.Equal(t, c.times, f.times, c.id)
	}
	_, err := parseForgiveness([]byte(`{"id":""}`))
	require.ErrorContains(t, err, "allowed: 1 to 64")
}
