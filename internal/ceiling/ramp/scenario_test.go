package ramp

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestScenarios plays testdata/*.txt. Every stretch of time is made in one step, and
// in many: the state must be the same.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, parts := range []int64{1, 2, 3, 7, 40} {
			t.Run(fmt.Sprintf("%s in %d", filepath.Base(file), parts), func(t *testing.T) {
				sc := &script{T: t, parts: parts}
				for i, line := range strings.Split(string(text), "\n") {
					sc.where = fmt.Sprintf("line %d: %s", i+1, line)
					if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
						sc.play(words)
					}
				}
				require.Greater(t, sc.compared, 2)
			})
		}
	}
}

// A script plays one file. Its format:
//
//	# comment
//	scenario <name>                                begins from nothing
//	config <field>=<value> ...                     the fields of a Config
//	pods <n>                                       for "each"
//	<from> <length> <used>/<offered> <a> -> <b>    a stretch of time
//	<from> <length> <used>/<offered> <a> -> <b> each <n>
//	change <field>=<value> ... -> <ceiling>
//	join after <silence> -> <ceiling>
//	ask after <silence> -> <ceiling>
//
// used and offered are tokens per period. each is what Numaflow gives to each of the
// pods in that second: the whole tokens of its ceiling, divided and rounded down.
type script struct {
	*testing.T

	parts    int64
	where    string
	compared int
	c        Config
	pods     float64
	s        State
	ceil     Ceiling
	now      int64
}

func (sc *script) play(words []string) {
	last := words[len(words)-1]
	switch words[0] {
	case "scenario":
		sc.c, sc.pods, sc.s, sc.now = Config{Per: time.Second, TTL: DefaultTTL}, 1, State{}, 0
	case "config":
		sc.configure(words[1:])
		sc.step(Step{})
	case "pods":
		sc.pods = sc.number(words[1])
	case "change":
		sc.configure(words[1 : len(words)-2])
		sc.step(Step{Now: sc.now})
		sc.expect(last, sc.ceil.At(sc.now))
	case "join", "ask":
		sc.step(Step{Now: sc.now, Empty: words[0] == "join", Silence: sc.micros(words[2])})
		sc.expect(last, sc.ceil.At(sc.now))
	default:
		sc.stretch(words)
	}
}

// stretch plays a line of time.
func (sc *script) stretch(words []string) {
	require.True(sc, len(words) == 6 || len(words) == 8 && words[6] == "each", sc.where)
	from, length := sc.micros(words[0]), sc.micros(words[1])
	require.Equal(sc, sc.now, from, sc.where)
	require.Positive(sc, length, sc.where)
	// As a processor does, it rounds what was used up and what was offered down.
	used, offered, _ := strings.Cut(words[2], "/")
	rate := func(word string) float64 { return sc.number(word) / float64(sc.c.Max) * Whole }
	st := Step{Now: from + length, Used: int64(math.Ceil(rate(used))), Offered: int64(math.Floor(rate(offered)))}
	start := sc.ceil.At(from)
	sc.expect(words[3], start)
	if sc.c.Mode == Scheduled { // known without another step
		sc.expect(words[5], sc.ceil.At(st.Now))
	}
	whole, _ := sc.c.Next(sc.s, st)
	for part := int64(1); part <= sc.parts; part++ {
		st.Now = from + length*part/sc.parts
		sc.step(st)
	}
	require.Equal(sc, whole, sc.s, sc.where)
	sc.now = st.Now
	level := sc.ceil.At(sc.now)
	sc.expect(words[5], level)
	if len(words) == 8 {
		if sc.c.Mode == Scheduled {
			level = start
		}
		sc.expect(words[7], math.Floor(math.Floor(level+1e-9)/sc.pods))
	}
}

func (sc *script) step(st Step) { sc.s, sc.ceil = sc.c.Next(sc.s, st) }

func (sc *script) expect(word string, got float64) {
	sc.compared++
	require.InDelta(sc, sc.number(word), got, 6e-7, sc.where) // six decimals
}

func (sc *script) number(word string) float64 {
	n, err := strconv.ParseFloat(word, 64)
	require.NoError(sc, err, sc.where)
	return n
}

func (sc *script) micros(word string) int64 {
	d, err := time.ParseDuration(word)
	require.NoError(sc, err, sc.where)
	return d.Microseconds()
}

func (sc *script) configure(words []string) {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		field := reflect.ValueOf(&sc.c).Elem().FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, key) })
		require.True(sc, field.IsValid(), sc.where)
		switch f := field.Addr().Interface().(type) {
		case *int64:
			*f = int64(sc.number(value))
		case *time.Duration:
			*f = time.Duration(sc.micros(value)) * time.Microsecond
		case *bool:
			*f = value == "true"
		case *Mode:
			for *f = Relaxed; f.String() != value; *f++ {
				require.Less(sc, *f, GoBackN, sc.where)
			}
		}
	}
	require.NoError(sc, sc.c.Validate(), sc.where)
}
