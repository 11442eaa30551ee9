package costrule

import (
	"errors"
	"log/slog"
	"math"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"time"
)

// AllowedNumber describes the input of Number.
const AllowedNumber = "a number, 0 or more"

// Ungrantable is a cost above every limit, so a draw of it is refused with throttle.ReasonTooLarge. It replaces larger numbers, and costs
// that cannot be read.
const Ungrantable = math.MaxInt32

// Number parses a number of tokens: decimal digits with a fraction, an exponent and blanks around them, as in 5, 4.2 or 5e2. It rounds up,
// and caps at Ungrantable. ok is false for anything else, such as a negative or hexadecimal number, NaN, or no digit at all.
func Number(text string) (n int, ok bool) {
	f, ok := decimal(text)
	if !ok || f < 0 {
		return 0, false
	}
	if f == 0 {
		mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
		if strings.ContainsAny(mantissa, "123456789") {
			return 1, !strings.Contains(mantissa, "-") // too small for a float, but not zero
		}
	}
	return int(min(math.Ceil(f), Ungrantable)), true
}

// Integer parses an integer in any JSON form, including 2.0 and 1e2. ok is false for anything else, and beyond the range of int32.
func Integer(text string) (n int, ok bool) {
	f, ok := decimal(text)
	if !ok || f != math.Trunc(f) || f < math.MinInt32 || f > math.MaxInt32 {
		return 0, false
	}
	return int(f), true
}

// decimal parses a decimal number. Numbers too large for a float are infinite.
func decimal(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	if strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil || errors.Is(err, strconv.ErrRange)
}

// oneForm returns a JSON number in one form for all its spellings. Integers below 1e19 keep all their digits; other numbers become those of
// a float64, as most services read them.
func oneForm(text string) string {
	const short = 15 // digits that need no care
	if len(text) <= short && strings.Trim(text, "0123456789") == "" {
		return text
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return text
	}
	if f != 0 && f == math.Trunc(f) && math.Abs(f) <= 1e19 {
		if exact, _, err := big.ParseFloat(text, 10, 128, big.ToNearestEven); err == nil && exact.IsInt() {
			return exact.Text('f', 0)
		}
	}
	return strconv.FormatFloat(f+0, 'g', -1, 64) // -0 is 0
}

// A Complaint logs costs that cannot be read, at most one a minute. The zero value is ready, and it is safe for concurrent use.
type Complaint struct {
	mu   sync.Mutex
	last time.Time
	more int
}

// Tell logs at level warn that the cost in a place cannot be read, and the outcome for its message.
func (c *Complaint) Tell(log *slog.Logger, place, value, outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.IsZero() && time.Since(c.last) < time.Minute {
		c.more++
		return
	}
	log.Warn("a cost cannot be read", "place", place, "value", Shown(value), "allowed", AllowedNumber, "outcome", outcome, "others", c.more)
	c.last, c.more = time.Now(), 0
}

// Shown returns a value for logs and errors: quoted and shortened.
func Shown(value string) string {
	const most = 40
	return strconv.Quote(value[:min(len(value), most)])
}
