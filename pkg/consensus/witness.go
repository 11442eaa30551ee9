package consensus

// A Witness keeps a Testament, and so proves to a processor that earlier ones under its ID are dead.
// A Member calls its methods one at a time, before each request and when it leaves, and with no lock
// held. None may block for long; a Witness that cannot do its work says so by itself, once, and does
// nothing from then on.
type Witness interface {
	// Inherit tries to get hold of the Testament, and returns the wills found there when it did.
	// held is false when another process holds it: Inherit is called again then.
	Inherit() (wills []Will, held bool)
	// Settled says that the store knows of the deaths that Inherit has returned.
	Settled()
	// Write stores the will of this process, which holds the Testament.
	Write(own Will)
	// Release gives the Testament up: this process uses nothing any more. keep leaves its will
	// there, because the store was not notified, and nothing is owed.
	Release(keep bool)
}

// WithWitness lets the member take over at once the holdings of processes under its ID that w proves
// to be dead, and leaves its own to its successor. Defaults to none: a claim then stays for a
// removal time. Not for a limit on calls in flight: those of a dead process may go on.
func WithWitness(w Witness) Option { return func(o *options) { o.witness = w } }

// A witnessLock is a Member's state of its Witness. Only the goroutine that syncs uses it, and Leave after
// that has ended.
type witnessLock struct {
	witness Witness // nil: none
	held    bool
	settled bool
}

// inherit gets hold of the Testament if it can, before a request is made.
func (m *Member) inherit() {
	h := &m.lock
	if h.witness == nil || h.settled {
		return
	}
	var wills []Will
	if !h.held {
		if wills, h.held = h.witness.Inherit(); !h.held {
			return
		}
	}
	m.mu.Lock()
	h.settled = m.p.Inherit(m.now(), wills)
	tookOver := m.p.takeover.done
	m.mu.Unlock()
	if !h.settled {
		return
	}
	h.witness.Settled()
	if tookOver {
		m.log.Info("the process before this one, under the same ID, has died: its share was taken over at once")
	}
}

// writeWill stores the will of this process, before the newest request goes out.
func (m *Member) writeWill() {
	if !m.lock.held {
		return
	}
	m.mu.Lock()
	holder := m.holder
	m.mu.Unlock()
	will := Will{}
	if holder != nil {
		will.Owes = holder.Report(0).Debt
	}
	m.mu.Lock()
	will = m.p.Will(will.Owes)
	m.mu.Unlock()
	m.lock.witness.Write(will)
}

// release gives the Testament up when the Member leaves.
func (m *Member) release(keep bool) {
	if m.lock.witness != nil {
		m.lock.witness.Release(keep)
	}
}
