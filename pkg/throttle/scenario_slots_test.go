package throttle

import (
	"context"
	"strings"
	"sync"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// grantSlots grants slots of a tag. others is the demand elsewhere.
func grantSlots(o *order, f *InFlight) {
	g := sharing.TagSlotGrant{Tag: o.Word(""), Bound: true, Granted: int64(o.Count("0")), Demand: int64(o.Number(o.Value("others")))}
	o.Fill(&g, nil)
	slotHolder{f}.GrantSlots([]sharing.TagSlotGrant{g})
}

// A slotReport shows a demand in slots.
type slotReport struct{ sharing.TagSlotReport }

func (r slotReport) Wants() int64 { return r.Demand }

// slotted reports the tags of a limit on calls in flight, and tells what it says of one of them.
func slotted(o *order) string {
	tag, number := strings.Trim(o.Word(""), "-"), func(key string) int { return int(o.Number(o.Value(key))) }
	turn, rank, live := number("turn"), number("rank"), max(number("live"), 1)
	for _, r := range as[sharing.SlotTagHolder](o.T, o.holder()).ReportSlots(int64(turn), rank, live) {
		if r.Tag == tag {
			return o.Tell(slotReport{r})
		}
	}
	return o.TellIf(false, nil)
}

// A slotWaits is an Observer of waits for slots.
type slotWaits struct {
	sync.Mutex
	waits []string
}

// Waits implements Observer.
func (o *slotWaits) Waits(_ context.Context, w Wait) (done func(Waited)) {
	o.Lock()
	defer o.Unlock()
	o.waits = append(o.waits, w.Limit+":"+string(w.Reason))
	return nil
}

// taken returns the waits in order, and forgets them.
func (o *slotWaits) taken() string {
	o.Lock()
	defer o.Unlock()
	defer func() { o.waits = nil }()
	return strings.Join(o.waits, " ")
}
