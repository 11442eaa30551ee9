package sharing

import (
	"time"
)

// An Order requests slots.
type Order struct {
	// Count is the number of slots requested: 0, only to give back, to 64.
	Count int
	// Held is the number of slots that this processor has reserved and that are not due yet.
	Held int
	// Spacing is the time between two slots of the whole limit.
	Spacing time.Duration
	// Ahead is how many slots the pool may reserve beyond those that are due.
	Ahead int
	// Return is the Slots.Last of a reservation, to give back its last Unused slots. 0 gives none back.
	Return int64
	Unused int
}

// Slots are the reserved slots.
type Slots struct {
	// Count is the number of slots granted: 0 to the number requested.
	Count int
	// Wait is the time to the first slot on the store's clock, from some moment between the order and its answer. The others follow Spacing
	// apart.
	Wait time.Duration
	// Spacing is the present time between two slots, possibly longer than in the order. 0 if unknown.
	Spacing time.Duration
	// Part is the most slots that this processor should hold reserved, so that other processors get their part of the slots that may be
	// reserved ahead. Values below 1 count as 1.
	Part int
	// Last names the reservation, to give slots back; 0 means they cannot be given back. After an order that only gives back, it is the new
	// name of the rest of that reservation.
	Last int64
	// Next is the time, from the same moment, before which no unreserved slot is due. Again is when to ask for one. It includes a random
	// time if other processors ask too, so that all have the same chance.
	Next, Again time.Duration
}
