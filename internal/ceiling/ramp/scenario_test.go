package ramp

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
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
				lines, err := play(string(text), parts)
				require.NoError(t, err)
				require.Positive(t, lines)
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
	parts int64
	c     Config
	set   bool
	pods  int64
	s     State
	ceil  Ceiling
	now   int64
	lines int
}

// play returns how many ceilings it compared. Anything that it does not understand
// is an error.
func play(text string, parts int64) (int, error) {
	var sc *script
	lines := 0
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		var err error
		switch {
		case words[0] == "scenario" && len(words) > 1:
			if sc != nil && sc.lines == 0 {
				err = fmt.Errorf("nothing was played before")
			}
			sc = &script{parts: parts, pods: 1}
		case sc == nil:
			err = fmt.Errorf("before the first scenario")
		default:
			before := sc.lines
			err = sc.line(words)
			lines += sc.lines - before
		}
		if err != nil {
			return lines, fmt.Errorf("line %d: %q: %w", i+1, line, err)
		}
	}
	if sc == nil || sc.lines == 0 {
		return lines, fmt.Errorf("the file ends before anything was played")
	}
	return lines, nil
}

func (sc *script) line(words []string) error {
	switch {
	case words[0] == "config":
		if sc.set {
			return fmt.Errorf("a second config; use change")
		}
		sc.set = true
		sc.c = Config{Per: time.Second, TTL: DefaultTTL}
		if err := sc.configure(words[1:]); err != nil {
			return err
		}
		sc.step(Step{})
		return nil
	case !sc.set:
		return fmt.Errorf("before config")
	case words[0] == "pods" && len(words) == 2:
		var err error
		sc.pods, err = strconv.ParseInt(words[1], 10, 64)
		if err == nil && sc.pods < 1 {
			err = fmt.Errorf("no pods")
		}
		return err
	case words[0] == "change" && len(words) >= 4 && words[len(words)-2] == "->":
		if err := sc.configure(words[1 : len(words)-2]); err != nil {
			return err
		}
		sc.step(Step{Now: sc.now})
		return sc.expect("after the change", sc.ceil.At(sc.now), words[len(words)-1])
	case (words[0] == "join" || words[0] == "ask") && len(words) == 5 && words[1] == "after" && words[3] == "->":
		silence, err := parseMicros(words[2])
		if err != nil {
			return err
		}
		sc.step(Step{Now: sc.now, Empty: words[0] == "join", Silence: silence})
		return sc.expect("then", sc.ceil.At(sc.now), words[4])
	case len(words) == 6 && words[4] == "->", len(words) == 8 && words[4] == "->" && words[6] == "each":
		return sc.stretch(words)
	}
	return fmt.Errorf("unknown")
}

// stretch plays a line of time.
func (sc *script) stretch(words []string) error {
	from, err := parseMicros(words[0])
	if err != nil {
		return err
	}
	if from != sc.now {
		return fmt.Errorf("it is %dus", sc.now)
	}
	length, err := parseMicros(words[1])
	if err != nil {
		return err
	}
	if length <= 0 {
		return fmt.Errorf("no time")
	}
	used, offered, err := sc.rates(words[2])
	if err != nil {
		return err
	}
	start := sc.ceil.At(from)
	if err := sc.expect("when it begins", start, words[3]); err != nil {
		return err
	}
	if sc.c.Mode == Scheduled { // known without another step
		if err := sc.expect("as foreseen", sc.ceil.At(from+length), words[5]); err != nil {
			return err
		}
	}
	whole, _ := sc.c.Next(sc.s, Step{Now: from + length, Used: used, Offered: offered})
	for part := int64(1); part <= sc.parts; part++ {
		sc.step(Step{Now: from + length*part/sc.parts, Used: used, Offered: offered})
	}
	if sc.s != whole {
		return fmt.Errorf("in %d steps %+v, in one %+v", sc.parts, sc.s, whole)
	}
	sc.now = from + length
	end := sc.ceil.At(sc.now)
	if err := sc.expect("when it ends", end, words[5]); err != nil || len(words) == 6 {
		return err
	}
	level := end
	if sc.c.Mode == Scheduled {
		level = start
	}
	each := int64(math.Floor(level+1e-9)) / sc.pods
	if got := strconv.FormatInt(each, 10); got != words[7] {
		return fmt.Errorf("each has %s", got)
	}
	return nil
}

// rates reads "used/offered" in tokens per period. As a processor does, it rounds
// what was used up and what was offered down.
func (sc *script) rates(word string) (used, offered int64, err error) {
	u, o, ok := strings.Cut(word, "/")
	if !ok {
		return 0, 0, fmt.Errorf("%q, want used/offered", word)
	}
	uf, err := strconv.ParseFloat(u, 64)
	if err != nil {
		return 0, 0, err
	}
	of, err := strconv.ParseFloat(o, 64)
	if err != nil {
		return 0, 0, err
	}
	if !(uf >= 0 && of >= 0) {
		return 0, 0, fmt.Errorf("%q, want 0 or more", word)
	}
	return int64(math.Ceil(uf / float64(sc.c.Max) * Whole)), int64(math.Floor(of / float64(sc.c.Max) * Whole)), nil
}

func (sc *script) step(st Step) { sc.s, sc.ceil = sc.c.Next(sc.s, st) }

func (sc *script) expect(when string, got float64, word string) error {
	sc.lines++
	want, err := strconv.ParseFloat(word, 64)
	if err != nil {
		return err
	}
	if !(math.Abs(got-want) <= 6e-7) { // six decimals
		return fmt.Errorf("the ceiling is %.6f %s", got, when)
	}
	return nil
}

func parseMicros(word string) (int64, error) {
	d, err := time.ParseDuration(word)
	if err == nil && (d < 0 || d%time.Microsecond != 0) {
		err = fmt.Errorf("%q, want whole microseconds", word)
	}
	return d.Microseconds(), err
}

func (sc *script) configure(words []string) error {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		number, numberErr := strconv.ParseInt(value, 10, 64)
		duration, durationErr := time.ParseDuration(value)
		err := numberErr
		switch key {
		case "mode":
			err = fmt.Errorf("unknown mode")
			for m := Relaxed; m <= GoBackN; m++ {
				if m.String() == value {
					sc.c.Mode, err = m, nil
				}
			}
		case "min":
			sc.c.Min = number
		case "max":
			sc.c.Max = number
		case "thresholdPercentage":
			sc.c.ThresholdPercentage = number
		case "rampDownPercentage":
			sc.c.RampDownPercentage = number
		case "per":
			sc.c.Per, err = duration, durationErr
		case "rampUpDuration":
			sc.c.RampUpDuration, err = duration, durationErr
		case "coolDownPeriod":
			sc.c.CoolDownPeriod, err = duration, durationErr
		case "ttl":
			sc.c.TTL, err = duration, durationErr
		case "resumedRampUp":
			sc.c.ResumedRampUp, err = strconv.ParseBool(value)
		default:
			err = fmt.Errorf("unknown field")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	return sc.c.Validate()
}

// A line that the script does not understand, or that is not true, fails.
func TestScenarioFaults(t *testing.T) {
	const config = "scenario x\nconfig mode=relaxed min=10 max=20 rampUpDuration=10s\n"
	const second = "0s 1s 1/1 10 -> 10\n"
	_, err := play(config+second, 1)
	require.NoError(t, err)
	for name, tc := range map[string]struct{ text, says string }{
		"nothing played":         {config, "ends before"},
		"nothing played earlier": {config + config + second, "line 3: \"scenario x\": nothing was played"},
		"no config":              {"scenario x\n" + second, "before config"},
		"unknown field":          {config + "change maxx=5 -> 10\n", "maxx=5: unknown field"},
		"a word too many":        {config + "0s 1s 1/1 10 -> 10 11\n", "unknown"},
		"time goes back":         {config + second + second, "it is 1000000us"},
		"wrong start":            {config + "0s 1s 1/1 9 -> 10\n", "10.000000 when it begins"},
		"wrong end":              {config + "0s 1s 1/1 10 -> 11\n", "10.000000 when it ends"},
		"end is not a number":    {config + "0s 1s 1/1 10 -> NaN\n", "10.000000 when it ends"},
		"wrong each":             {config + "pods 2\n0s 1s 1/1 10 -> 10 each 6\n", "each has 5"},
		"wrong after a change":   {config + "change min=11 -> 10\n", "11.000000 after the change"},
		"wrong after a silence":  {config + "ask after 1s -> 11\n", "10.000000 then"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := play(tc.text, 1)
			require.ErrorContains(t, err, tc.says)
		})
	}
}
