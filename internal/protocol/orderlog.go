package protocol

import (
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/duration"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// An orders lists what operators and pods have ordered in a pool, as far as a processor goes by it.
type orders struct {
	override Override
	file     File
	pauses   []limit.Paused // Until is by the author's clock
	quotas   QuotaChanges
}

// orders returns the orders in force at now.
func (p *Processor) orders(now time.Duration) (o orders) {
	o.override, o.file = p.ceiling.override, p.files.file
	for _, s := range p.Pauses.inForce(now) {
		o.pauses = append(o.pauses, limit.Paused{Tag: s.Tag, Until: s.Until, Reason: s.Reason, By: s.By})
	}
	if p.tags.on {
		o.quotas = p.tags.changes
	}
	return o
}

// since returns a line for each order that has come, changed or ended since others.
func (o *orders) since(before *orders) (lines []LogLine) {
	say := func(message string, args ...any) { lines = append(lines, LogLine{slog.LevelInfo, message, args}) }
	now, was := o.override, before.override
	now.ending, was.ending = overrideEnd{}, overrideEnd{} // written by processors
	switch {
	case now == was:
	case now.Max > 0:
		say("the pool's limit is overridden", append([]any{"max", now.Max, "per", duration.Short(now.Per)}, who(now.Until, now.By, now.Reason)...)...)
	case was.Max > 0:
		say("the override of the pool's limit has ended", "max", was.Max, "per", duration.Short(was.Per), "by", was.By, "reason", was.Reason)
	}
	for _, p := range o.pauses {
		if !slices.Contains(before.pauses, p) {
			say("the pool is paused", append([]any{"tag", p.Tag}, who(p.Until, p.By, p.Reason)...)...)
		}
	}
	for _, p := range before.pauses {
		if !slices.ContainsFunc(o.pauses, func(o limit.Paused) bool { return o.Tag == p.Tag }) {
			say("a pause of the pool has ended", "tag", p.Tag, "by", p.By, "reason", p.Reason)
		}
	}
	return append(append(lines, o.file.since(&before.file)...), o.quotas.since(before.quotas)...)
}

// since returns a line if another file is in force than before.
func (f *File) since(before *File) []LogLine {
	switch {
	case f.Count == before.Count && f.Hash == before.Hash:
	case f.Hash != "":
		args := []any{"file", f.String()}
		if f.Max > 0 {
			args = append(args, "max", f.Max, "per", duration.Short(f.Per))
		}
		return []LogLine{{slog.LevelInfo, "the pool goes by a changed settings file", append(args, "quotas", f.Quotas != nil, "logLevel", f.LogLevel)}}
	case before.Hash != "":
		return []LogLine{{slog.LevelInfo, "the pool no longer goes by a changed settings file", []any{"file", before.String()}}}
	}
	return nil
}

// since returns a line for each quota that has changed since others.
func (c QuotaChanges) since(before QuotaChanges) (lines []LogLine) {
	names := map[string]bool{"": true}
	for name := range c.Tags {
		names[name] = true
	}
	for name := range before.Tags {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		now, was := c.Of(name), before.Of(name)
		switch {
		case now == nil && was == nil:
		case now == nil:
			o := before.Orders[name]
			lines = append(lines, LogLine{slog.LevelInfo, "the change of a quota has ended", []any{"tag", tagName(name), "by", o.By, "reason", o.Reason}})
		case was == nil || !reflect.DeepEqual(now, was) || !c.Orders[name].same(before.Orders[name]):
			o := c.Orders[name]
			lines = append(lines, LogLine{slog.LevelInfo, "a quota was changed", append([]any{
				"tag", tagName(name), "reserved", now.Reserved, "total", now.Total, "weight", now.Weight, "class", now.Class, "budgets", len(now.Budgets),
			}, who(o.Until, o.By, o.Reason)...)})
		}
	}
	return lines
}

// same reports whether two orders are, whatever processors have written of their ends.
func (o QuotaOrder) same(other QuotaOrder) bool {
	o.ending, other.ending = overrideEnd{}, overrideEnd{}
	return o == other
}

// who returns the attributes of an order: its end, if it has one, its author and the reason.
func who(until time.Time, by, reason string) []any {
	end := "it is ended"
	if !until.IsZero() {
		end = until.UTC().Format(time.RFC3339)
	}
	return []any{"until", end, "by", by, "reason", reason}
}
