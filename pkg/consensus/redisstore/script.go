package redisstore

import (
	_ "embed" // the scripts
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
)

//go:embed lua/server.lua
var serverLua string

//go:embed lua/record.lua
var recordLua string

//go:embed lua/document.lua
var documentLua string

//go:embed lua/sync.lua
var syncLua string

//go:embed lua/leave.lua
var leaveLua string

//go:embed lua/save.lua
var saveLua string

var (
	syncScript  = redis.NewScript(serverLua + recordLua + documentLua + syncLua)
	leaveScript = redis.NewScript(serverLua + recordLua + leaveLua)
	saveScript  = redis.NewScript(serverLua + recordLua + documentLua + saveLua)
)

// syncArgs returns the arguments of the sync script, in the order that sync.lua
// gives. The client writes integers in decimal, which the script relies on.
func syncArgs(req *consensus.Request, longest time.Duration, wantsPolicy bool, life string) []any {
	policy := 0
	if wantsPolicy {
		policy = 1
	}
	remembered := ticketsArg(req.Unanswered, consensus.Ticket{Seq: req.LastSeq, Nonce: req.LastNonce}, req.Recalled)
	args := make([]any, 0, 13+4*len(req.Documents)+6*len(req.Tags))
	args = append(args, req.ID, req.Incarnation, req.Seq, req.Nonce, req.LastSeq, req.LastTime,
		req.Revision, req.Lease.Milliseconds(), consensus.Removal(longest).Microseconds(), policy, remembered, life, len(req.Documents))
	for i := range req.Documents {
		args = append(args, saveArgs(&req.Documents[i])...)
	}
	for _, t := range req.Tags {
		args = append(args, t.Tag, int64(t.InUse), int64(t.Wanted), int64(t.Demand), t.PoolSize, t.Note)
	}
	return args
}

// saveArgs returns the arguments of the save script: those of one document.
func saveArgs(d *consensus.DocumentReport) []any {
	return []any{d.Name, uint64(d.Version), uint64(d.Base), d.Body}
}

// leaveArgs returns the arguments of the leave script.
func leaveArgs(l *consensus.Leave) []any {
	remembered := ticketsArg(l.Unanswered, consensus.Ticket{Seq: l.LastSeq, Nonce: l.LastNonce})
	return []any{l.ID, l.Incarnation, l.Seq, remembered}
}

// ticketsArg lists requests in the form that sent_by of record.lua looks them up in.
func ticketsArg(unanswered []consensus.Ticket, others ...consensus.Ticket) string {
	b := make([]byte, 1, 32*(len(unanswered)+len(others))+1)
	b[0] = ' '
	for _, list := range [][]consensus.Ticket{unanswered, others} {
		for _, t := range list {
			b = strconv.AppendUint(b, t.Seq, 10)
			b = append(b, ':')
			b = strconv.AppendUint(b, t.Nonce, 10)
			b = append(b, ' ')
		}
	}
	return string(b)
}
