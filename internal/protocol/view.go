package protocol

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A View is a consensus.View.
type View struct {
	Pool, ID, Incarnation string
	State                 string
	Share, Want           driver.Share
	LeaseLeft             time.Duration
	Degraded              bool
	Issuing               bool
	Live, PoolSize        int
	Agreed                bool
	Silent                int
	Roster                []driver.RosterRow
	TookOver              bool
	Demand                driver.Share
	Lease, Interval       time.Duration
	Stretch               float64
	Frozen                time.Duration
	FrozenBy              driver.FreezeCause
	Failures              int
	LastError             error
	Ceiling               float64
	Override              Override
	Files                 FileView
	Adapted               bool
	Cuts                  uint64
	Paused                []limit.Paused
	Generation            uint64
	PauseMissing          []string
	Tags                  []TagView
	QuotaVersion          driver.Version
	Quotas                QuotaChanges
	QuotaError            error
	Unreadable            []string
	Revision              uint64
}

// View returns the processor's view at now. It shares no memory with p.
func (p *Processor) View(now time.Duration) View {
	p.Tick(now)
	v := View{
		Pool: p.Cfg.Pool, ID: p.Cfg.ID, Incarnation: p.incarnation, State: string(p.state),
		Share: p.held, Want: p.want, Degraded: p.degraded, Issuing: p.isIssuing(now),
		Live: p.Answer.Live, PoolSize: p.Answer.PoolSize, Agreed: p.Answer.Agreed,
		Roster:   append([]driver.RosterRow(nil), p.Answer.Roster...),
		TookOver: p.Takeover.Done, Demand: p.demand, Lease: p.Lease, Interval: p.Interval(), Stretch: p.load.stretch(),
		Frozen: max(p.frozen-now, 0), FrozenBy: p.frozenBy,
		Failures: p.failures, Revision: p.revision,
		Ceiling: p.ceiling.tokens(&p.core, now, 0), Override: p.ceiling.override, Files: FileView{p.files.file, p.files.own},
		Tags: p.TagViews(), QuotaVersion: p.tags.changesVersion(), Quotas: p.tags.changes, QuotaError: p.tags.unreadable,
	}
	docs := Overview{Documents: p.docs.All()}
	docs.readDocuments()
	v.Unreadable = docs.Unreadable
	v.Adapted, v.Cuts, _ = p.ceiling.adapted(p.clock.logical(now))
	if p.held > 0 {
		v.LeaseLeft = p.until - now
	}
	k := &p.Pauses
	v.Generation = uint64(k.Version)
	for i, row := range p.Answer.Roster {
		if overdue(&row, len(p.Answer.Roster)) {
			v.Silent++
		}
		if row.ID != p.Cfg.ID && p.notes[i].Paused < k.Version {
			v.PauseMissing = append(v.PauseMissing, row.ID)
		}
	}
	return v
}

// Until is the local time at which the share in force ends, if nothing comes
// before; Tick is due then. It is in the past when there is none.
func (p *Processor) Until() time.Duration { return p.until }
