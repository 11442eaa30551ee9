package throttle

// An Issuer is a Sharer that can also have the tokens of a limit issued one by one: by
// the store, which keeps them at least Spacing apart for the whole pool. While a Lease
// says Issuing there are no shares, and every token is a slot that was reserved here.
// *consensus.Member is one. A strict limit needs one.
type Issuer interface {
	Sharer

	// Reserve asks for slots. It never blocks and never calls the Throttle; done is
	// called once, later, from another goroutine. A Throttle asks again only when it
	// has been answered. An error means that slots may have been reserved in vain.
	Reserve(o Order, done func(Slots, error))
}

// maxOrder is how many slots one order asks for at most.
const maxOrder = 64
