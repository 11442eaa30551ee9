package throttle

import "github.com/numaproj-contrib/numathrottle/internal/engine/gate"

// A drop is how many tokens of debt are not booked in one settlement or charge: own by the limit itself, which don't count as used by its
// tags, and most by the limit or one of its tags, whichever drops more. Those are counted.
type drop struct{ own, most int }

// drops are those of several limits, by gate. The zero value is ready for use.
type drops map[*gate.Gate]drop

func (d *drops) put(of *gate.Gate, e drop) {
	if e == (drop{}) {
		return
	}
	if *d == nil {
		*d = drops{}
	}
	(*d)[of] = e
}

// A debtor settles a permit of a limit, or of one of its tags after it, of which of is dropped so far.
type debtor interface {
	settleBeside(pos int64, n, used int, of drop) drop
}

// droppedBy counts n tokens that the limit drops.
func (t *rateLimiter) droppedBy(tag string, n int) drop {
	t.noteDropped(tag, n)
	return drop{n, n}
}
