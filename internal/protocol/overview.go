package protocol

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// An Overview is what the record of a pool shows to operators. It is as the last step left it:
// it includes processors that have died since, and with nobody left it does not change.
type Overview struct {
	Pool string
	// Processors are the live ones, by rising ID.
	Processors []OverviewRow
	// Agreed is consensus: there are processors, all report the same pool size, and it is their
	// number. PoolSize is the largest one.
	Agreed   bool
	PoolSize int
	// Max per Per is the limit in force, without a ramp: the override, or the lowest
	// configured limit of a processor. Max 0: nobody reports one.
	Max int
	Per time.Duration
	// Override is the pool's override; the zero Override: none.
	Override Override
	// File is the settings file in force; the zero File: none.
	File File
	// Announced is the limit that the called service announces.
	Announced Announced
	// Ramp is where the pool's ramp stands, in tokens per RampPer; 0: it has none.
	Ramp    float64
	RampPer time.Duration
	// Lowered is the part of the limit in force that refusals of the called service have left; 0: they have not lowered it.
	Lowered float64
	// Pauses are the pauses, as LoadPauses returns them.
	Pauses []limit.Paused
	// Frozen is how long no share can grow yet, as far as a processor has reported, and FrozenBy says why.
	Frozen   time.Duration
	FrozenBy driver.FreezeCause
	// Slots is how many calls may be in flight, if the pool limits those: the lowest number configured by a processor.
	Slots int
	// Strict says that a processor's limit is strict, as far as they report it: the pool issues slots to all.
	Strict bool
	// Settings are the settings of the processors; more than one: they disagree. See Disagreement.
	Settings []Setting
	// Unreadable names the known documents of the pool that cannot be read: they are from
	// a later version, or damaged.
	Unreadable []string
	// Granted is what the limit in force grants in the long run, in tokens per second: less than Max per Per if it is hard.
	Granted float64
	// Documents are all documents of the record, by rising name.
	Documents []driver.Document

	changes QuotaChanges // as far as they can be read
}

// An OverviewRow is one processor as of its last request.
type OverviewRow struct {
	driver.RosterRow
	Standing

	// Max per Per is the configured limit, and Hard says that it must not be raised. Max is 0 when the processor
	// reports no limit of tokens.
	Max  int
	Per  time.Duration
	Hard bool

	// File is the hash of its settings file; empty: it has none, or does not say. FileFault means that the file cannot be used, and
	// FileRestart that some of its settings count only after a restart.
	File                   string
	FileFault, FileRestart bool

	// Overdue says that it hangs, has died, or cannot reach the store: its silence is longer than the interval between syncs, also with a
	// slow store. All that it has reported is outdated. The others get its claim once Left is over.
	Overdue bool
}

// Gone reports whether the processor has died, and nobody was there since to remove it.
func (r *OverviewRow) Gone() bool { return r.Overdue && r.Left <= 0 }

// overdue reports whether a processor of a pool of so many should have synced by now, or lost a sync, or both.
func overdue(row *driver.RosterRow, live int) bool {
	lease := (row.Silent + row.Left) * 2 / 3
	longest := wire.Clamp(lease) // two steps of a small pool are less apart
	if live >= crowd {
		longest = lease / 2
	}
	return row.Silent > longest+SyncTimeout(lease)
}

// LoadOverview returns what the record of a pool shows. It changes nothing. ctx bounds the
// call. Errors: *RequestError for a name that no pool can have; one that wraps ErrNoPool; those of the
// store.
func LoadOverview(ctx context.Context, s driver.Store, pool string) (Overview, error) {
	docs, roster, err := pooldoc.Load(ctx, s, pool)
	if err != nil {
		return Overview{}, fmt.Errorf("consensus: loading pool %q: %w", pool, err)
	}
	o, part := overviewOf(pool, roster)
	if ager, ok := s.(driver.Ager); ok {
		if age, err := ager.Age(ctx, pool); err == nil { // without it all is as of the newest sync
			o.addSilence(age)
		}
	}
	o.Documents = docs
	o.readDocuments()
	o.setGranted(part)
	return o, nil
}

// addSilence records that nobody has synced for age.
func (o *Overview) addSilence(age time.Duration) {
	for i := range o.Processors {
		p := &o.Processors[i]
		p.Silent, p.Left = p.Silent+age, max(0, p.Left-age)
		p.Overdue = overdue(&p.RosterRow, len(o.Processors))
	}
	if o.Frozen = max(0, o.Frozen-age); o.Frozen == 0 {
		o.FrozenBy = ""
	}
}

// overviewOf returns the overview of a roster. part is the part of the limit that is granted in the long run.
func overviewOf(pool string, roster []driver.RosterRow) (o Overview, part float64) {
	o = Overview{Pool: pool, Agreed: len(roster) > 0}
	var lowest ceiling.Rate
	var announced announcements
	limited := 0
	part = 1
	for _, row := range roster {
		r := OverviewRow{RosterRow: row, Standing: standingOf(row.Note), Overdue: overdue(&row, len(roster))}
		if left := r.Frozen - row.Silent; left > o.Frozen {
			o.Frozen, o.FrozenBy = left, r.FrozenBy
		}
		if r.Slots > 0 {
			o.Slots = min(cmp.Or(o.Slots, r.Slots), r.Slots)
		}
		n := NoteIn(row.Note)
		o.Strict = o.Strict || n.settings.strict()
		if n.file.hash != noFile {
			r.File, r.FileFault, r.FileRestart = n.file.hash, n.file.fault, n.file.restart
		}
		if n.limit.Max > 0 {
			r.Max, r.Per, r.Hard = int(n.limit.Max), n.limit.Per, n.hard
			announced.add(&n)
			limited++
			if lowest.Max == 0 || n.limit.Below(lowest) {
				if lowest, part = n.limit, 1; r.Granted > 0 {
					part = r.Granted
				}
			}
		}
		o.Processors = append(o.Processors, r)
		o.PoolSize = max(o.PoolSize, row.PoolSize)
	}
	for _, row := range roster {
		o.Agreed = o.Agreed && row.PoolSize == len(roster)
	}
	o.Announced, lowest = announced.over(lowest, limited)
	o.Max, o.Per, o.Settings = int(lowest.Max), lowest.Per, Settings(roster)
	return o, part
}

func (o *Overview) setGranted(part float64) { o.Granted = perSecond(int64(o.Max), o.Per) * part }

// Overview returns what LoadOverview would show as of the processor's last sync. Pauses, the ceiling and the freeze are as the
// processor knows them by now. It has no Documents.
func (v *View) Overview() Overview {
	o, part := overviewOf(v.Pool, v.Roster)
	o.setFile(v.Files.InForce)
	o.setOverride(v.Override)
	o.Pauses, o.Unreadable, o.changes = v.Paused, v.Unreadable, v.Quotas
	if o.Frozen, o.FrozenBy = v.Frozen, v.FrozenBy; v.Frozen == 0 {
		o.FrozenBy = ""
	}
	all := perSecond(int64(o.Max), o.Per)
	for i := range o.Processors {
		p := &o.Processors[i]
		part := v.Ceiling / p.Per.Seconds() / all // NaN or infinite without a limit: not below 1
		if p.ID == v.ID && v.Ceiling > 0 && part < 1-1e-6 {
			if v.Adapted {
				o.Lowered = part
			} else {
				o.Ramp, o.RampPer = v.Ceiling, p.Per
			}
		}
	}
	o.setGranted(part)
	return o
}

// setOverride makes an override the limit in force; the zero Override changes nothing.
func (o *Overview) setOverride(override Override) {
	if o.Override = override; override.Max > 0 {
		o.Max, o.Announced.Followed, o.Announced.Awaited = override.Max, false, false
		if override.Per > 0 {
			o.Per = override.Per
		}
	}
}

// setFile makes the limit of a file the one in force, unless the pool follows a lower one that the called service announces.
func (o *Overview) setFile(f File) {
	o.File = f
	of, is := ceiling.Rate{Max: int64(f.Max), Per: f.Per}, ceiling.Rate{Max: int64(o.Max), Per: o.Per}
	if of.Per == 0 {
		of.Per = o.Per
	}
	switch {
	case f.Max == 0 || o.Max == 0:
	case o.Announced.Followed:
		if a := (ceiling.Rate{Max: int64(o.Announced.Max), Per: o.Announced.Per}); a.Below(of) {
			return
		}
		fallthrough
	case !o.Announced.Awaited || of.Below(is):
		o.Max, o.Per, o.Announced.Followed, o.Announced.Awaited = f.Max, of.Per, false, false
	}
}

// InForce names the documents of the pool that are in force at now, by rising name. It leaves out ended ones, and orders that were
// carried out. Documents that this release does not know are in force.
func (o *Overview) InForce(now time.Time) (names []string) {
	for _, d := range o.Documents {
		there := true
		switch d.Name {
		case limitDocument:
			there = o.Override.Max > 0 && (o.Override.Until.IsZero() || o.Override.Until.After(now))
		case pauseDocument:
			there = slices.ContainsFunc(o.Pauses, func(p limit.Paused) bool { return p.Until.IsZero() || p.Until.After(now) })
		case quotaDocument:
			there = len(o.changes.Tags) > 0 || o.changes.Other != nil
		case fileDocument:
			there = o.File.Hash != ""
		case rampDocument:
			there = o.Ramp > 0
		case backoffDocument:
			there = o.Lowered > 0
		case spentDocument, debtDocument:
			there = false
		}
		if there || slices.Contains(o.Unreadable, d.Name) {
			names = append(names, d.Name)
		}
	}
	return names
}

// QuotaChanges returns the changes of the pool's quotas, as LoadQuotas returns them. The error is one for a document that this release
// cannot read.
func (o *Overview) QuotaChanges() (QuotaChanges, error) {
	if o.Documents == nil { // of a View
		return o.changes, nil
	}
	return quotaChangesIn(o.Documents)
}

// Reserved returns the rate reserved for all tags together, in tokens per second: by the quotas of the processors, with the
// changes of the pool's document. Without any processor that has quotas, ok is false. The rate is exact for processors that
// are configured with known, which may be the zero Quotas. Others report only the sum of unchanged quotas as of their last
// sync. That sum includes the configured quota of a tag that was changed since.
func (o *Overview) Reserved(known limit.Quotas) (rate float64, ok bool) {
	for i := range o.Processors {
		row := &o.Processors[i]
		busy, has := unpackBusy(row.Busy)
		if !has {
			continue
		}
		sum := busy.unchanged + o.changes.reserves(row.Per)
		if QuotaHash(row.RosterRow) == QuotaHashOf(known, row.Per) {
			sum = o.changes.over(known, row.Per).ReservedRate(row.Per)
		}
		rate, ok = max(rate, sum), true
	}
	return rate, ok
}

// readDocuments reads the override, the quota changes, the ramp, the backoff and the pauses.
func (o *Overview) readDocuments() {
	o.setFile(readIn(o, &fileDoc))
	o.setOverride(readIn(o, &limitDoc))
	o.changes = readIn(o, &quotaDoc)
	r, b, n := readIn(o, &rampDoc), readIn(o, &backoffDoc), readIn(o, &PauseDoc)
	o.Ramp, o.RampPer = r.State.Standing()
	if part := b.State.Standing(); part < 1 {
		o.Lowered = part
	}
	o.Pauses = n.paused()
	_, _ = readIn(o, &spentDoc), readIn(o, &debtDoc)
}

// readIn reads one document of the pool, and notes whether it is unreadable.
func readIn[T any](o *Overview, d *pooldoc.Doc[T]) T {
	value, err := d.Read(d.In(o.Documents))
	if err != nil {
		o.Unreadable = append(o.Unreadable, d.Name)
	}
	return value
}
