package protocol

import (
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/ramp"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/state"
	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
)

// The names of the documents of a pool.
const (
	limitDocument   = "limit"
	rampDocument    = "ramp"
	backoffDocument = "backoff"
	pauseDocument   = "pause"
	quotaDocument   = "quota"
	spentDocument   = "spent"
	debtDocument    = "debt"
	fileDocument    = "file"
)

// The documents of a pool: the override of the limit, the states of its ramp and backoff,
// changes of quotas and of spent budgets, forgiven debt, the newest settings file, and pauses.
var (
	limitDoc   = pooldoc.Doc[Override]{Name: limitDocument, Body: Override.body, Parse: parseOverride, Late: true}
	rampDoc    = sharedDoc[ramp.State](rampDocument)
	backoffDoc = sharedDoc[backoff.State](backoffDocument)
	quotaDoc   = pooldoc.Doc[QuotaChanges]{Name: quotaDocument, Body: QuotaChanges.body, Parse: parseQuotaChanges, Late: true}
	spentDoc   = pooldoc.Doc[spentList]{Name: spentDocument, Body: spentList.body, Parse: parseSpentList, Late: true}
	debtDoc    = pooldoc.Doc[forgiveness]{Name: debtDocument, Body: forgiveness.body, Parse: parseForgiveness, Late: true}
	fileDoc    = pooldoc.Doc[File]{Name: fileDocument, Body: File.body, Parse: parseFile, Late: true}
	PauseDoc   = pooldoc.Doc[pauseList]{Name: pauseDocument, Body: pauseBody, Parse: parsePauseList, Merges: true}
)

func pauseBody(n pauseList) ([]byte, error) { return n.body() }

// sharedDoc is the document of a state that the pool shares. A document that does not parse,
// as from another release, becomes an unreadable state.
func sharedDoc[S state.Moving[S], P state.Listed[S]](name string) pooldoc.Doc[state.Shared[S]] {
	return pooldoc.Doc[state.Shared[S]]{
		Name: name,
		Body: state.Text[S, P],
		Parse: func(body []byte) (state.Shared[S], error) {
			s, err := state.Parse[S, P](string(body))
			s.Unreadable = err != nil
			return s, err
		},
	}
}
