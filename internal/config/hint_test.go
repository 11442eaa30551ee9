package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHints(t *testing.T) {
	for text, want := range map[string]string{
		"60": "60s", "1.5": "1.5s", "1d": "24h", "2 days": "48h", "1w": "168h", "5 min": "5m", "10sec": "10s", "3hours": "3h",
		"0": "", "": "", "x": "", "-1": "", "1e3": "", "0d": "", "60s": "", "99999999h": "", "d": "", "1m1d": "",
	} {
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		require.Equal(t, want, durationHint(text), text)
	}
	for text, want := range map[string]string{
		"0.5": "; use max: 1, per: 2s", "1.5": "; use max: 3, per: 2s", ".25": "; use max: 1, per: 4s", "2.0": "", "0.0": "", "5": "", "1/2": "", "x": "",
	} {
		require.Equal(t, want, fractionHint(text), text)
	}
	for text, want := range map[string]string{
		"api.openai.com": "https://api.openai.com", "api.openai.com/v1": "https://api.openai.com/v1", "localhost:8080": "http://localhost:8080",
		"secret": "-", "https://x": "", "ftp://x": "", "user:pass@api.openai.com": "-", "api.openai.com/?key=1": "-", "llm.internal:8000/v1": "-", "": "",
	} {
		switch want {
		case "":
		case "-":
			want = "; it lacks the scheme, http:// or https://"
		default:
			want = "; did you mean " + want + "?"
		}
		require.Equal(t, want, endpointHint(text), text)
	}
}

// Only what is an address beyond doubt is shown.
func TestStoreWithoutAScheme(t *testing.T) {
	for text, want := range map[string]string{
		"localhost:6379": "; did you mean redis://localhost:6379?", "nats.svc:4222": "; did you mean nats://nats.svc:4222?",
		"s:26379":       "; did you mean redis+sentinel://s:26379/MASTER?",
		"a:6379,b:6379": "; did you mean redis+cluster://a:6379,b:6379?",
		"a:4222,b:4222": "; did you mean nats://a:4222,b:4222?",
		"hunter2":       "", "user:pass@h:6379": "", "a b:6379": "", "secret:1": "",
	} {
		_, errs := ParseStore(text)
		require.Len(t, errs, 1)
		require.Contains(t, errs[0].Error(), "store is not a URL (not shown, for it may hold a secret)"+want+", allowed")
	}
}
