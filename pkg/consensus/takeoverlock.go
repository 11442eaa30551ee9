package consensus

import (
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
)

// A witnessLock is a Member's state of its TakeoverLock. Only the goroutine that syncs uses it, and Leave after
// that has ended.
type takeover struct {
	takeoverLock protocol.TakeoverLock // nil: none
	held         bool
	settled      bool
}

// inherit gets hold of the TakeoverRecord if it can, before a request is made.
func (m *Member) inherit() {
	h := &m.lock
	if h.takeoverLock == nil || h.settled {
		return
	}
	var lastStates []protocol.LastState
	if !h.held {
		if lastStates, h.held = h.takeoverLock.Inherit(); !h.held {
			return
		}
	}
	m.mu.Lock()
	h.settled = m.p.Inherit(m.now(), lastStates)
	tookOver := m.p.Takeover.Done
	m.mu.Unlock()
	if !h.settled {
		return
	}
	h.takeoverLock.Settled()
	if tookOver {
		m.log.Info("the process before this one, under the same ID, has died: its share was taken over at once")
	}
}

// writeLastState stores the last state of this process, before the newest request goes out.
func (m *Member) writeLastState() {
	if !m.lock.held {
		return
	}
	m.mu.Lock()
	holder := m.holder
	m.mu.Unlock()
	lastState := protocol.LastState{}
	if holder != nil {
		lastState.Owes = holder.Report(0).Debt
	}
	m.mu.Lock()
	lastState = m.p.LastState(lastState.Owes)
	m.mu.Unlock()
	m.lock.takeoverLock.Write(lastState)
}

// release gives the TakeoverRecord up when the Member leaves.
func (m *Member) release(keep bool) {
	if m.lock.takeoverLock != nil {
		m.lock.takeoverLock.Release(keep)
	}
}
