package limit

import "time"

// An Order asks for slots.
type Order struct {
	// Count is how many slots are wanted: 0, only to give back, to 64.
	Count int
	// Held is how many slots this processor has reserved that have not come yet.
	Held int
	// Spacing is the distance of two slots of the whole limit.
	Spacing time.Duration
	// Ahead is how many slots the pool may reserve beyond those that are due.
	Ahead int
	// Return is the Slots.Last of a reservation of which so many slots, Unused, are
	// given back from its end; 0: none.
	Return int64
	Unused int
}

// Slots are what was reserved.
type Slots struct {
	// Count is how many slots were granted: 0 to what was wanted.
	Count int
	// Wait is the time to the first of them on the store's clock, from some moment
	// between the order and its answer; the others follow Spacing apart.
	Wait time.Duration
	// Spacing is the distance of two slots at present; it may be above that of the
	// order. 0 when that is not known.
	Spacing time.Duration
	// Part is how many slots this processor should hold reserved at most, so that the
	// others have their part of what may be reserved ahead; below 1 it counts as 1.
	Part int
	// Last names the reservation, to give slots back; 0: they cannot be. To an order that
	// only gives back it is the new name of what is left of that reservation.
	Last int64
	// Next is the time, from the same moment, before which no slot comes that is not
	// reserved yet. Again is when asking for one makes sense, with a random time on top
	// where others ask too, so that all have the same chance.
	Next, Again time.Duration
}
