package fairtags_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
)

// blames is what is said of the refused calls of some tags.
type blames struct {
	all fairtags.Blame
	of  [4]fairtags.Blame
}

func (b *blames) refuse(at time.Duration, tag int, tokens float64) fairtags.Verdict {
	b.all.Add(int64(at), tokens)
	b.of[tag].Add(int64(at), tokens)
	return b.of[tag].Judge(int64(at), &b.all)
}

func TestATagThatIsRefusedAloneIsTheCulprit(t *testing.T) {
	var b blames
	for i := range 9 {
		require.Equal(t, fairtags.Undecided, b.refuse(time.Duration(i)*time.Millisecond, 0, 7), "too few to tell")
	}
	require.Equal(t, fairtags.Culprit, b.refuse(10*time.Millisecond, 0, 7))

	b = blames{}
	for range 9 {
		require.Equal(t, fairtags.Undecided, b.refuse(0, 0, 7), "nine calls are just within chance")
	}
	require.Equal(t, fairtags.Culprit, b.refuse(0, 0, 7))

	b = blames{}
	for i := range 5 { // of three tags that are refused alike, one comes five times in a row now and then
		require.Equal(t, fairtags.Undecided, b.refuse(time.Duration(i)*10*time.Second, 0, 1))
	}
	require.Equal(t, fairtags.Culprit, b.refuse(50*time.Second, 0, 1), "nobody else was refused in all that time")
	require.Equal(t, fairtags.Undecided, b.refuse(3*time.Minute, 1, 1), "what is long ago counts no more")
}

// The culprit is a tag that was refused alone for a second, and the second begins with the first refusal after a while without any.
func TestHowLongATagWasRefusedAlone(t *testing.T) {
	for _, begin := range []time.Duration{0, time.Second, 100 * time.Second} {
		for silence, wants := range map[time.Duration]fairtags.Verdict{
			30 * time.Second: fairtags.Culprit, 30*time.Second + 1: fairtags.Undecided,
		} {
			var b blames
			b.refuse(begin, 0, 1)
			for range 4 {
				b.refuse(begin+silence, 0, 1)
			}
			require.Equal(t, wants, b.refuse(begin+silence+time.Second/2, 0, 1), "%v after %v", silence, begin)
		}
		for after, wants := range map[time.Duration]fairtags.Verdict{time.Second: fairtags.Culprit, time.Second - 1: fairtags.Undecided} {
			var b blames
			for range 5 {
				b.refuse(begin, 0, 1)
			}
			require.Equal(t, wants, b.refuse(begin+after, 0, 1), "%v after %v", after, begin)
		}
	}
}

// What other tags were refused fades: after 20 s nineteen of twenty count as all, exactly.
func TestRefusedCallsFade(t *testing.T) {
	var b blames
	for range 5 {
		b.refuse(0, 1, 1)
	}
	for range 5 {
		b.refuse(20*time.Second, 0, 1)
	}
	require.Equal(t, fairtags.Culprit, b.refuse(20*time.Second, 0, 1))
	b = blames{}
	b.refuse(0, 1, 1)
	require.Equal(t, fairtags.Undecided, b.refuse(0, 0, 19))
	b = blames{}
	b.refuse(0, 1, 1.01)
	require.Equal(t, fairtags.Everybody, b.refuse(0, 0, 19))
}

func TestMoreThanHalfOfTheRefusedCallsIsMeantByWhatIsBehindIt(t *testing.T) {
	var b blames
	require.Equal(t, fairtags.Undecided, b.refuse(0, 0, 1))
	require.Equal(t, fairtags.Everybody, b.refuse(time.Millisecond, 1, 1))
	require.Equal(t, fairtags.Everybody, b.refuse(2*time.Millisecond, 0, 1), "two of three are nothing")
	require.Equal(t, fairtags.Everybody, b.refuse(5*time.Second, 0, 1))

	rng := rand.New(rand.NewPCG(1, 1))
	verdicts := func(part float64) (n [3]int) {
		for range 200 {
			var b blames
			for i := range 100 {
				tag := 0
				if rng.Float64() >= part {
					tag = 1
				}
				if v := b.refuse(time.Duration(i)*10*time.Millisecond, tag, 1); i > 20 && tag == 0 {
					n[v]++
				}
			}
		}
		return n
	}
	alike := verdicts(0.5)
	require.Less(t, alike[fairtags.Culprit], alike[fairtags.Everybody]/20, "as many of both: it is nobody's fault")
	most := verdicts(0.8)
	require.Greater(t, most[fairtags.Culprit], 10*most[fairtags.Everybody], "four of five")
}

// What a call costs counts, and a few large calls say less than many small ones.
func TestTokensOfRefusedCallsCount(t *testing.T) {
	var b blames
	for i := range 50 {
		b.refuse(time.Duration(i), 1, 1)
	}
	require.Equal(t, fairtags.Everybody, b.refuse(50, 0, 70), "one call")
	for i := range 8 {
		b.refuse(time.Duration(51+i), 0, 70)
	}
	require.Equal(t, fairtags.Everybody, b.refuse(60, 0, 70), "no more than ten calls")
	for i := range 5 {
		b.refuse(time.Duration(61+i), 0, 70)
	}
	require.Equal(t, fairtags.Culprit, b.refuse(70, 0, 70))
}
