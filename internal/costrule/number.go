package costrule

import (
	"errors"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
)

// AllowedNumber says what Number takes.
const AllowedNumber = "a number, 0 or more"

// Ungrantable is a cost above every limit, so a draw of it is refused with throttle.ReasonTooLarge. It stands for
// numbers that are as large or larger, and for costs that cannot be read.
const Ungrantable = math.MaxInt32

// Number reads a number of tokens: decimal digits with a fraction, an exponent and blanks around them, as in 5, 4.2 or
// 5e2. It is rounded up; what is above Ungrantable is Ungrantable. ok is false for anything else, such as a negative or
// hexadecimal number, NaN, or no digit at all.
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

// Integer reads a whole number as JSON may have it, also one that is written 2.0 or 1e2. ok is false for
// anything else, and beyond the range of int32.
func Integer(text string) (n int, ok bool) {
	f, ok := decimal(text)
	if !ok || f != math.Trunc(f) || f < math.MinInt32 || f > math.MaxInt32 {
		return 0, false
	}
	return int(f), true
}

// decimal reads a decimal number. One that is too large for a float is infinite.
func decimal(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	if strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil || errors.Is(err, strconv.ErrRange)
}

// A Complaint logs costs that cannot be read, at most one a minute. The zero value is ready; it may be used from any
// number of goroutines at once.
type Complaint struct {
	mu   sync.Mutex
	last time.Time
	more int
}

// Tell logs at level warn that the cost which stands in a place cannot be read, and what became of its message.
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

// Shown is a value as logs and errors have it: quoted, and not all of a long one.
func Shown(value string) string {
	const most = 40
	if len(value) > most {
		value = value[:most]
	}
	return strconv.Quote(value)
}
