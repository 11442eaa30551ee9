package fairtags_test

import (
	"fmt"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
)

// soon is how many seconds a pool has to give what is reserved: four sync intervals.
const soon = 4

// Those of pools are what FoundationDB's tests lack: many processors, and something reserved.
var pools = []scenario{
	{
		name: "JumpOnOne", says: "a hog on 40 processors; a tag asks for its reserved half on one",
		limit: 1000, processors: 40, tags: []fairtags.Terms{quota(0, inf), quota(500, inf)},
		clients: append(everywhere(40, 0, 250, 1), client{7, 1, 0, 1}),
		stages:  []stage{{reached: uses(0, 1000)}, {change: calls(40, 500), by: soon, reached: both(uses(1, 500), uses(0, 500))}},
	},
	{
		name: "JumpOnFour", says: "the same on four",
		limit: 1000, processors: 40, tags: []fairtags.Terms{quota(0, inf), quota(500, inf)},
		clients: append(everywhere(40, 0, 250, 1), everywhere(4, 1, 0, 1)...),
		stages:  []stage{{reached: uses(0, 1000)}, {change: all(1, 125), by: soon, reached: both(uses(1, 500), uses(0, 500))}},
	},
	{
		name: "JumpOnAll", says: "the same on all 40",
		limit: 1000, processors: 40, tags: []fairtags.Terms{quota(0, inf), quota(500, inf)},
		clients: append(everywhere(40, 0, 250, 1), everywhere(40, 1, 0, 1)...),
		stages:  []stage{{reached: uses(0, 1000)}, {change: all(1, 12.5), by: soon, reached: both(uses(1, 500), uses(0, 500))}},
	},
	{
		name: "HogOn39", says: "a hog on 39 of 40 processors, 300 of 1,000 reserved for a tag on the other",
		limit: 1000, processors: 40, tags: []fairtags.Terms{quota(0, inf), quota(300, inf)},
		clients: append(everywhere(40, 0, 250, 1)[1:], client{0, 1, 300, 1}),
		stages:  []stage{{reached: both(uses(1, 300), uses(0, 700))}},
	},
	{
		name: "Newcomer", says: "a second tag with something reserved comes to a processor; the first one keeps its own",
		limit: 1000, processors: 10, tags: []fairtags.Terms{quota(0, inf), quota(300, inf), quota(300, inf)},
		clients: []client{{9, 0, 5000, 1}, {0, 1, 300, 1}, {0, 2, 0, 1}}, // the hog syncs last in a second
		stages: []stage{
			{reached: both(uses(1, 300), uses(0, 700))},
			{change: calls(2, 300), by: soon, reached: uses(2, 300), always: uses(1, 300)},
		},
	},
	{
		name: "LowerLimit", says: "three tags have half of the limit reserved each, as it is halved: a third of what is left each",
		limit: 1000, processors: 10, tags: []fairtags.Terms{quota(300, inf), quota(300, inf), quota(300, inf)},
		clients: append(append(everywhere(10, 0, 50, 1), everywhere(5, 1, 100, 1)...), client{9, 2, 500, 1}),
		stages: []stage{
			{reached: both(uses(0, 333), uses(1, 333), uses(2, 333))},
			{change: func(w *world) { w.limit = 500 }, by: soon, reached: both(uses(0, 167), uses(1, 167), uses(2, 167))},
		},
	},
	{
		name: "Death", says: "a processor dies that has half of the limit; 300 reserved stay with a tag on another",
		limit: 1000, processors: 10, tags: []fairtags.Terms{quota(0, inf), quota(500, inf), quota(300, inf)},
		clients: append(everywhere(9, 0, 500, 1), client{9, 1, 500, 1}, client{3, 2, 300, 1}),
		stages: []stage{
			{reached: both(uses(0, 200), uses(1, 500), uses(2, 300))},
			{change: func(w *world) { w.processors[9].dead = true }, by: soon, reached: both(uses(0, 200), uses(2, 300))},
		},
	},
	{
		name: "Classes", says: "a batch tag beside an interactive one that takes all: a twentieth, then all that is left",
		limit: 1000, processors: 4, tags: []fairtags.Terms{quota(0, inf), {Total: inf, Limiting: inf, Class: 1}},
		clients: append(everywhere(4, 0, 500, 1), everywhere(4, 1, 500, 1)...),
		stages:  []stage{{reached: both(uses(0, 950), uses(1, 50))}, {change: all(0, 50), reached: both(uses(0, 200), uses(1, 800))}},
	},
	{
		name: "Flood", says: "10,000 names nobody knows beside 40 tags: they are one more",
		limit: 4100, tags: slices.Repeat([]fairtags.Terms{quota(0, inf)}, 40),
		clients: append(names(10_000, 1, 1), each40()...),
		stages:  []stage{{reached: both(uses(0, 100), uses(39, 100))}},
	},
	{
		name: "SmallTotal", says: "a total of 6 a minute on 40 processors that have been idle: 6 in a minute, at most 2 at once",
		limit: 1000, processors: 40, tags: []fairtags.Terms{quota(0, 0.1)}, clients: everywhere(40, 0, 0, 1),
		stages: []stage{
			{lasts: 60},
			{change: all(0, 1), lasts: 60, reached: granted(0, 60, 6), always: func(w *world) error {
				if w.use(0) > 2 {
					return fmt.Errorf("%g at once", w.use(0))
				}
				return nil
			}},
		},
	},
}

// all sets how many calls a second each client of a tag makes.
func all(tag int, calls float64) func(w *world) {
	return func(w *world) {
		for i := range w.clients {
			if w.clients[i].tag == tag {
				w.clients[i].calls = calls
			}
		}
	}
}

// each40 are clients of forty tags that ask for a fifth of the limit each.
func each40() (clients []client) {
	for tag := range 40 {
		clients = append(clients, client{0, tag, 800, 1})
	}
	return clients
}
