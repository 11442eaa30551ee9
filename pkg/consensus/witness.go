package consensus

import (
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
)

// A witnessLock is a Member's state of its Witness. Only the goroutine that syncs uses it, and Leave after
// that has ended.
type witnessLock struct {
	witness protocol.Witness // nil: none
	held    bool
	settled bool
}

// inherit gets hold of the Testament if it can, before a request is made.
func (m *Member) inherit() {
	h := &m.lock
	if h.witness == nil || h.settled {
		return
	}
	var wills []protocol.Will
	if !h.held {
		if wills, h.held = h.witness.Inherit(); !h.held {
			return
		}
	}
	m.mu.Lock()
	h.settled = m.p.Inherit(m.now(), wills)
	tookOver := m.p.Takeover.Done
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
	will := protocol.Will{}
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
