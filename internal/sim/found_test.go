package sim

import (
	"fmt"
	"testing"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// A foundSeed is a random run that broke a promise, or seemed to, and that no directed
// schedule tells again.
type foundSeed struct {
	seed uint64
	// processors is as in Config: the twelve of `make sim`, or 0, as in `make soak`.
	processors int
	// found tells what it was, what it led to, and whether the product or the check was at fault.
	found string
}

var foundSeeds = []foundSeed{
	{
		seed: 691, processors: 12,
		found: "Slots came too close (seed 691 of twelve processors; a fault of the product): those that a store had forgotten lay further ahead " +
			"than anybody told it afterwards, because the limit was lower when they were reserved. What is reserved ends with the lease now, and each " +
			"sync tells how far ahead its sender has reserved.",
	},
	{
		seed: 440, processors: 12,
		found: "A ceiling below the limits in force (seed 440 of twelve processors; a fault of the check, not of the product): where a ramp stands is " +
			"kept in whole microseconds, rounded down, which the check did not allow for.",
	},
	{
		seed: 354, processors: 12,
		found: "A ceiling below the limits in force (seed 354 of twelve processors; a fault of the check, not of the product): a store that has fallen " +
			"back to an older copy shows an older override until those who know the newer one have asked, which the check did not allow for.",
	},
	{
		seed: 889, processors: 12,
		found: "A ceiling above the limits in force (seed 889 of twelve processors; a fault of the check, not of the product): a store that was emptied was " +
			"given back an override that had been ended since, and who knew so went by what the live processors are configured with. The check had " +
			"noted that a moment before, when others were live.",
	},
	{
		seed: 3431,
		found: "Slots came too close (seeds 3431, 4136; a fault of the product): on a store that learns its time late, a document that an operator " +
			"saved took the place of the entry whose time tells the slots reserved last, and a step of the clock came between. Saving stamps what " +
			"the last step left; go test -run TestASavedDocumentMovesNoSlots ./pkg/consensus/driver shows it alone.",
	},
	{
		seed: 2952,
		found: "No recovery (seed 2952; a fault of the product): slots were reserved as far ahead as the larger spacing of a limit that was about to be " +
			"raised allows, and the pool waited for them. What may be reserved is reckoned by the spacing of who asks.",
	},
	{
		seed: 1554,
		found: "Slots came too close (seed 1554; a fault of the check, not of the product): a store forgot slots that their owner had lost before, " +
			"with its lease, which the check took for slots that may be used.",
	},
	{
		seed: 8132,
		found: "A ceiling above and below the limits in force (seeds 5393, 8132; a fault of the check, not of the product): a processor went by an override " +
			"that the store had lost, as it does until it has given that back. The check looked at what was on record when the " +
			"answer came, not when it was given.",
	},
	{
		seed: 8415,
		found: "A paused processor drew (seed 8415; a fault of the product): the store had been wiped and its clock had begun anew, and by the old one, " +
			"which the processor still went by, the pause in the news was over. News count from when they are heard; " +
			"go test -run TestNewsByAnotherClock ./internal/protocol shows it alone.",
	},
	{
		seed: 9723,
		found: "A paused processor drew (seeds 4043, 5716, 6359, 6606, 9723; a fault of the product): the store had been wiped, and was given back " +
			"the pauses of a processor that had not heard of the newest one. Those who had took it for over by the clock of the new store. " +
			"Their own clock counts; go test -run TestAPauseOutlastsTheStoresClock ./internal/protocol shows it alone.",
	},
	{
		seed: 11884,
		found: "Slots came too close (seeds 11884, 13473, 16639; a fault of the check, not of the product): processes that died gave back slots " +
			"that they had used. A Throttle gives back only what has not come yet, and so does the check now.",
	},
	{
		seed: 15918,
		found: "A ceiling below the limits in force (seed 15918; a fault of the check, not of the product): a ramp was moved by processors of a " +
			"rollout that began theirs lower, and the check went by where the others begin.",
	},
	{
		seed: 6433,
		found: "No recovery (seed 6433; a fault of the check, not of the product): a ramp that looks at use was to arrive " +
			"at its end while the pool was paused.",
	},
	{
		seed: 3756,
		found: "Shares overlapped, with Degrade (seed 3756; a fault of the product): the schedule \"a pool is not new while somebody may go on " +
			"without the store\" shows it alone.",
	},
	{
		seed: 4693,
		found: "No recovery (seed 4693; a fault of the product): a processor that had heard news of a record that the store had lost since took no " +
			"resumption on the new record for newer than its pause, and asked for that for ever. What the record says counts; " +
			"go test -run TestWhoResumesEndsAPause ./internal/protocol shows it alone.",
	},
	{
		seed: 12490,
		found: "Draws under a pause that it had sent its receipt for (seed 12490; a fault of the check, not of the product): the store hung for longer " +
			"than a sync may take, and then took the request that proposed the pause after one by which a processor asked what is on record. That was not " +
			"the pause, of which it had news, and the news were a sync timeout old: such news are believed no more. The check went by what was on record " +
			"when the answer came, and not when it was made.",
	},
	{
		seed: 14405,
		found: "Draws after a pause was on record (seed 14405; a fault of the product): the schedules \"a pause in the place of what is given back\" and " +
			"\"a pause where nothing was when it was seen\" show it alone.",
	},
	{
		seed: 6824,
		found: "A ceiling above the limits in force (seed 6824; a fault of the check, not of the product): a store that was emptied was given back an " +
			"override that had been ended since, and who knew so was told a moment later who else was live, and went by the lowest limit of these. " +
			"When it had the answer, another one with a lower limit was live, too. The check looked only then.",
	},
	{
		seed: 17846,
		found: "Draws after a pause of its own (seed 17846; a fault of the product): the schedule \"an ended pause in the place of what is given back, and " +
			"another one that is asked for\" shows it alone.",
	},
	{
		seed: 4294967314, processors: 12,
		found: "More tokens of a tag than its total (seeds 4294967314, 4294974825, 4294974862 of twelve processors; a fault of the product): tokens set " +
			"aside by the store were used by the clock of their processor, read when that was. Clocks run apart, so tokens earned one after the other " +
			"were used together. Each answer tells anew; go test -run TestReservationsGoByTheClockOfTheStore ./internal/protocol shows it alone.",
	},
	{
		seed: 4294972423, processors: 12,
		found: "More tokens than a budget (seed 4294972423 of twelve processors; a fault of the check, not of the product): tokens were set aside in one " +
			"hour and used after the store's clock had stepped into another one. They count for the first, and the check counted them for the second.",
	},
}

// TestSeedsFound makes each of those runs again, in `make norace`.
func TestSeedsFound(t *testing.T) {
	testkit.SkipShort(t, "every seed that once broke a promise runs again")
	testkit.SkipRace(t, "a run has one goroutine, and TestSeeds has some with it")
	for _, s := range foundSeeds {
		t.Run(fmt.Sprint(s.seed), func(t *testing.T) {
			if v := Run(Config{Seed: s.seed, Processors: s.processors}).Violation; v != nil {
				t.Errorf("%s\n%v\n%s", replay(s.seed, s.processors), v, s.found)
			}
		})
	}
}
