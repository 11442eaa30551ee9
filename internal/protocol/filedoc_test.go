package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
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
