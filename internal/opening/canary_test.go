package opening

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
)

// awkward is a secret that looks different in every encoding.
const awkward = "Kanarienvogel/7:f3@c9%b x+~\"q\\W#42"

// fragment is how many bytes of a secret in a row are one too many.
const fragment = 8

// forms returns what a text must not hold if it is to show nothing of a secret: each
// row of so many bytes of it, and of each of its encodings. The second are rows of
// hexadecimal digits, of which a byte has two.
func forms(secret string) (plain, digits map[string]bool) {
	plain, digits = map[string]bool{}, map[string]bool{}
	add := func(to map[string]bool, n int, text string) {
		for i := range len(text) - n + 1 {
			to[text[i:i+n]] = true
		}
	}
	var inJSON strings.Builder
	_ = json.NewEncoder(&inJSON).Encode(secret) //nolint:errchkjson // a string has a form
	for _, text := range []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), url.UserPassword("", secret).String(),
		strconv.Quote(secret), strconv.QuoteToASCII(secret), inJSON.String(),
	} {
		add(plain, fragment, text)
	}
	// In base64 with zero to two bytes before it, as in user:password.
	for skip := range 3 {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := encoding.EncodeToString([]byte("xx"[:skip] + secret))
			add(plain, fragment+2, text[4:len(text)-4])
		}
	}
	text := hex.EncodeToString([]byte(secret))
	add(digits, 2*fragment, text)
	add(digits, 2*fragment, strings.ToUpper(text))
	return plain, digits
}

// hits returns the lines of a text that show something of a secret.
func hits(text string, secrets ...string) []string {
	var found []string
	for _, secret := range secrets {
		plain, digits := forms(secret)
		shows := func(line string) bool {
			for i := range len(line) {
				for _, n := range []int{fragment, fragment + 2} {
					if i+n <= len(line) && plain[line[i:i+n]] {
						return true
					}
				}
				if i+2*fragment <= len(line) && digits[line[i:i+2*fragment]] {
					return true
				}
			}
			return false
		}
		for line := range strings.Lines(text) {
			if shows(line) {
				found = append(found, fmt.Sprintf("%.400q", line))
			}
		}
	}
	return found
}

// The search finds a secret in whatever form, or the test below could not fail.
func TestCanaryIsFound(t *testing.T) {
	for name, text := range map[string]string{
		"plain":       "dial redis://:" + awkward + "@h",
		"a part":      "password begins with " + awkward[:fragment],
		"another":     "..." + awkward[10:20] + "...",
		"quoted":      fmt.Sprintf("%q", awkward),
		"Go syntax":   fmt.Sprintf("%#v", struct{ p string }{awkward}),
		"hexadecimal": fmt.Sprintf("%x", "user "+awkward),
		"upper":       fmt.Sprintf("%X", awkward),
		"query":       "?password=" + url.QueryEscape(awkward),
		"URL":         (&url.URL{Scheme: "redis", User: url.UserPassword("u", awkward), Host: "h"}).String(),
		"path":        url.PathEscape(awkward),
		"JSON":        `{"p":` + strconv.Quote(awkward) + `}`,
		"basic":       base64.StdEncoding.EncodeToString([]byte("app:" + awkward)),
		"base64":      base64.StdEncoding.EncodeToString([]byte(awkward)),
		"base64 URL":  base64.URLEncoding.EncodeToString([]byte("a" + awkward)),
		"split":       "args: " + awkward[:11] + "\n" + awkward[11:],
	} {
		require.NotEmpty(t, hits("before\n"+text+"\nbehind\n", awkward), name)
	}
	require.Empty(t, hits("store redis://***@h: WRONGPASS\n"+config.Redacted+"\n", awkward))
}

// canaryFiles are files with secrets, and the secrets in them.
type canaryFiles struct {
	password, seed, creds, cert, key string
	// broken ones hold the secret where something else should be.
	brokenSeed, brokenCreds, brokenKey string
	secrets                            []string
}

func newCanaryFiles(t *testing.T, clients *testenv.Authority, creds string) *canaryFiles {
	t.Helper()
	seed, _ := newKey(t, nkeys.CreateUser)
	cert, key := clients.Issue(t, "client")
	block, _ := pem.Decode([]byte(key))
	f := &canaryFiles{
		password: writeFile(t, "password", awkward+"\n"), seed: writeFile(t, "seed", string(seed)), creds: writeFile(t, "creds", creds),
		cert: writeFile(t, "cert.pem", cert), key: writeFile(t, "key.pem", key),
		brokenSeed:  writeFile(t, "seed", "SU"+awkward),
		brokenCreds: writeFile(t, "creds", strings.Replace(creds, "SEED-----\n", "SEED-----\n"+awkward, 1)),
		brokenKey:   writeFile(t, "key.pem", strings.Replace(key, "\n-----END", awkward+"\n-----END", 1)),
	}
	// What stands before the D of a P-256 key in PKCS #8 is the same in all of them.
	f.secrets = []string{awkward, string(seed[4:]), string(block.Bytes[36:68])}
	for line := range strings.Lines(creds) {
		if strings.HasPrefix(line, "SU") || strings.HasPrefix(line, "eyJ") {
			f.secrets = append(f.secrets, strings.TrimSpace(line)[60*strings.Count(line[:3], "eyJ"):])
		}
	}
	return f
}

// canaryPlaces is every place that takes a secret, at servers of every mood.
func canaryPlaces(t *testing.T, f *canaryFiles, strict, parrot, plain, natsUser, tlsAddr, closed string) []place {
	t.Helper()
	inURL := url.PathEscape(awkward)
	inURL = strings.NewReplacer("@", "%40", ":", "%3A", "+", "%2B").Replace(inURL)
	var places []place
	add := func(name string, refused bool, env ...string) {
		p := place{Name: name, Refused: refused, Env: map[string]string{"NUMATHROTTLE_MAX": "1000", "NUMATHROTTLE_POOL": "p", "NUMATHROTTLE_ID": "i"}}
		for i := 0; i < len(env); i += 2 {
			p.Env["NUMATHROTTLE_"+env[i]] = env[i+1]
		}
		places = append(places, p)
	}
	yaml := func(lines string) string { return writeFile(t, "config.yaml", lines) }

	for at, addr := range map[string]string{"closed": closed, "strict": strict, "parrot": parrot, "plain": plain} {
		add("redis URL "+at, false, "STORE", "redis://:"+inURL+"@"+addr)
		add("redis password "+at, false, "STORE", "redis://"+addr, "STORE_PASSWORD", awkward)
		add("redis TLS key "+at, false, "STORE", "rediss://"+addr, "STORE_PASSWORD_FILE", f.password, "STORE_CERT_FILE", f.cert, "STORE_KEY_FILE", f.key)
	}
	add("redis file", false, "CONFIG", yaml("store: redis://"+strict+"\nstorePassword: "+strconv.Quote(awkward)+"\n"))
	add("redis TLS", false, "STORE", "rediss://"+tlsAddr+"?serverName="+serverName, "STORE_PASSWORD", awkward,
		"STORE_CERT_FILE", f.cert, "STORE_KEY_FILE", f.key)
	add("cluster", false, "STORE", "redis+cluster://:"+inURL+"@"+strict+","+closed)
	add("sentinel", false, "STORE", "redis+sentinel://:"+inURL+"@"+strict+"/m", "STORE_SENTINEL_PASSWORD", awkward)
	// Not at the parrot: what a sentinel says goes to the client's own logger, which
	// belongs to the whole process, before this module sees it.
	add("sentinel file", false, "STORE", "redis+sentinel://"+strict+"/m", "STORE_SENTINEL_PASSWORD_FILE", f.password)
	for at, addr := range map[string]string{"closed": closed, "user": natsUser} {
		add("nats URL "+at, false, "STORE", "nats://app:"+inURL+"@"+addr)
		add("nats token URL "+at, false, "STORE", "nats://"+inURL+"@"+addr)
		add("nats token "+at, false, "STORE", "nats://"+addr, "STORE_TOKEN", awkward)
		add("nats token file "+at, false, "STORE", "tls://"+addr, "STORE_TOKEN_FILE", f.password)
		add("nats password "+at, false, "STORE", "nats://"+addr, "STORE_USERNAME", "app", "STORE_PASSWORD_FILE", f.password)
		add("nats seed "+at, false, "STORE", "nats://"+addr, "STORE_NKEY_FILE", f.seed)
		add("nats creds "+at, false, "STORE", "nats://"+addr, "STORE_CREDS_FILE", f.creds)
		add("nats key "+at, false, "STORE", "tls://"+addr, "STORE_CERT_FILE", f.cert, "STORE_KEY_FILE", f.key)
	}

	add("no URL", true, "STORE", awkward)
	add("unknown scheme", true, "STORE", "http://u:"+inURL+"@h")
	add("raw in the URL", true, "STORE", "redis://:"+awkward+"@h")
	add("no @", true, "STORE", "redis://default:"+inURL)
	add("parameter", true, "STORE", "redis://h?password="+inURL+"&"+inURL)
	add("unknown variable", true, "STORE_PASWORD", awkward)
	add("twice", true, "STORE", "nats://u:"+inURL+"@h", "STORE_PASSWORD", awkward, "STORE_TOKEN", awkward)
	add("without a store", true, "STORE_PASSWORD", awkward, "STORE_SENTINEL_PASSWORD", awkward, "STORE_TOKEN", awkward)
	add("broken seed", true, "STORE", "nats://h", "STORE_NKEY_FILE", f.brokenSeed)
	add("broken creds", true, "STORE", "nats://h", "STORE_CREDS_FILE", f.brokenCreds)
	add("broken key", true, "STORE", "tls://h", "STORE_CERT_FILE", f.cert, "STORE_KEY_FILE", f.brokenKey)
	add("key as certificate", true, "STORE", "tls://h", "STORE_CERT_FILE", f.key, "STORE_KEY_FILE", f.key, "STORE_CA_FILE", f.password)
	for name, lines := range map[string]string{
		"list": "storePassword: [" + strconv.Quote(awkward) + "]\n", "mapping": "store: {url: " + strconv.Quote(awkward) + "}\n",
		"unknown key": "storePasword: " + strconv.Quote(awkward) + "\n", "not closed": "storePassword: \"" + awkward + "\n",
		"raw": "storePassword: " + awkward + "\nstorePassword: *" + awkward + "\n", "tag": "storePassword: !x " + strconv.Quote(awkward) + "\n",
		"alias": "storePassword: *" + awkward[:13] + "\n", "alone": awkward + "\n", "in the URL": "store: " + strconv.Quote("redis://:"+awkward+"@h") + "\n",
	} {
		add("YAML "+name, true, "CONFIG", yaml(lines))
	}
	return places
}

// TestCanary gives a process a secret in every place that takes one, has it print
// all there is to print, and looks for the secret in all that comes out: what it
// prints, logs, and panics with, and what the drivers' own loggers print.
func TestCanary(t *testing.T) {
	t.Parallel()
	authorities := testenv.NewAuthority(t)
	configure, _ := newAccount(t)
	_, creds := newAccount(t)
	strict := testenv.Redis(t, servers.WithPassword("another")).Addr()
	parrot := testenv.Redis(t, servers.WithRedisConfig(`rename-command AUTH ""`, `rename-command HELLO ""`)).Addr()
	plain := testenv.Redis(t, servers.WithPassword(awkward)).Addr()
	natsUser := strings.TrimPrefix(testenv.NATS(t, configure).URL(), "nats://")
	natsRight := strings.TrimPrefix(testenv.NATS(t, func(o *server.Options) { o.Username, o.Password = "app", awkward }).URL(), "nats://")
	tlsAddr := unwrap(t, serverConfig(t, authorities, authorities), plain)
	f := newCanaryFiles(t, authorities, creds)
	places := canaryPlaces(t, f, strict, parrot, plain, natsUser, tlsAddr, testenv.ClosedPort(t))
	places = append(places, place{Name: "nats right", Env: map[string]string{
		"NUMATHROTTLE_MAX": "1000", "NUMATHROTTLE_STORE": "nats://" + natsRight, "NUMATHROTTLE_STORE_USERNAME": "app", "NUMATHROTTLE_STORE_PASSWORD": awkward,
		"NUMATHROTTLE_POOL": "p",
	}})

	output := runCanary(t, places)
	require.Empty(t, hits(output, f.secrets...))

	// Everything was reached.
	for _, p := range places {
		reached := []string{"load: "}
		if p.Refused {
			reached = append(reached, "from env: numathrottle: ")
		} else {
			reached = append(reached, "open fail-fast: ", "view: ", "throttled: ")
		}
		for _, text := range reached {
			require.True(t, strings.Contains(output, p.Name+" "+text), "%s: no %q", p.Name, text) //nolint:testifylint // it would print the output
		}
	}
	for _, text := range []string{
		"connection refused", "WRONGPASS", "unknown command", unauthorized, "redis: ", "not shown", "tls: ",
		`"level":"WARN"`, "panic: ", "goroutine ",
	} {
		require.True(t, regexp.MustCompile(text).MatchString(output), "no %q", text)
	}
	require.True(t, regexp.MustCompile(`nats right view: .*Live:[1-9]`).MatchString(output), "the store has answered nobody")
}

// runCanary returns all that the process printed.
func runCanary(t *testing.T, places []place) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: it starts a process")
	}
	content, err := json.Marshal(places)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "places.json")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), canaryVariable+"="+file, "GOTRACEBACK=all")
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "it ends with a panic")
	require.Equal(t, 2, exit.ExitCode(), "%s", output)
	return string(output)
}
