package mapper

import (
	"fmt"
	"slices"
	"strings"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
)

// merge puts the handler's and the feed's responses into the order of the batch, and settles exempt messages. The error names every ID that
// does not have exactly one.
func (f *feed) merge(answers batchmapsdk.BatchResponses) (batchmapsdk.BatchResponses, error) {
	items := answers.Items()
	if !f.inOrder(answers) {
		at := make(map[string][]int, len(items)) // where the responses to an ID are
		for i := range items {
			at[items[i].Id()] = append(at[items[i].Id()], i)
		}
		ordered := make(batchmapsdk.BatchResponses, 0, len(f.entries))
		var faults answerFaults
		for i := range f.entries {
			e := &f.entries[i]
			switch where := at[e.id]; {
			case e.answer != nil:
				own := batchmapsdk.NewBatchResponse(e.id)
				for _, m := range *e.answer {
					own = own.Append(m)
				}
				ordered = ordered.Append(own)
			case len(where) == 0:
				faults.missing = append(faults.missing, e.id)
			default:
				ordered = ordered.Append(items[where[0]])
				at[e.id] = where[1:]
			}
		}
		f.sortOut(at, &faults)
		if err := faults.asError(); err != nil {
			return nil, err
		}
		items = ordered.Items()
		answers = ordered
	}
	if f.ExemptDropped {
		for i := range items {
			if admission.OnlyDrops(items[i].Items()) {
				f.Admitter.Exempt(f.entries[i].permit) // the zero permit, where it was denied
			}
		}
	}
	return answers, nil
}

// inOrder reports whether the handler's responses are complete and in the order of the batch, which is the usual case.
func (f *feed) inOrder(answers batchmapsdk.BatchResponses) bool {
	items := answers.Items()
	if f.denied || len(items) != len(f.entries) {
		return false
	}
	for i := range items {
		if items[i].Id() != f.entries[i].id {
			return false
		}
	}
	return true
}

// sortOut sorts the surplus responses into repeated answers and answers to unknown messages.
func (f *feed) sortOut(left map[string][]int, faults *answerFaults) {
	given := make(map[string]bool, len(f.entries))
	for i := range f.entries {
		if f.entries[i].answer == nil {
			given[f.entries[i].id] = true
		}
	}
	for id, where := range left {
		switch {
		case len(where) == 0:
		case given[id]:
			faults.repeated = append(faults.repeated, id)
		default:
			faults.unknown = append(faults.unknown, id)
		}
	}
}

// answerFaults are the IDs that a handler did not answer exactly once.
type answerFaults struct{ missing, repeated, unknown []string }

func (a *answerFaults) asError() error {
	var parts []string
	for _, fault := range []struct {
		what string
		ids  []string
	}{
		{"not answered", a.missing},
		{"answered more than once", a.repeated},
		{"answered but not given to it", a.unknown},
	} {
		if len(fault.ids) == 0 {
			continue
		}
		const shown = 3
		slices.Sort(fault.ids)
		parts = append(parts, fmt.Sprintf("%d %s (%q)", len(fault.ids), fault.what, fault.ids[:min(len(fault.ids), shown)]))
	}
	if len(parts) == 0 {
		return nil
	}
	return fmt.Errorf("mapper: the batch map handler has to answer each message once: %s", strings.Join(parts, ", "))
}
