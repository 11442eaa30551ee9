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

//go:embed lua/sync.lua
var syncLua string

//go:embed lua/leave.lua
var leaveLua string

var (
	syncScript  = redis.NewScript(serverLua + recordLua + syncLua)
	leaveScript = redis.NewScript(serverLua + recordLua + leaveLua)
)

// syncArgs returns the arguments of the sync script, in the order that sync.lua
// gives. The client writes integers in decimal, which the script relies on.
func syncArgs(req *consensus.Request, longest time.Duration, wantsPolicy bool, life string) []any {
	policy := 0
	if wantsPolicy {
		policy = 1
	}
	unanswered, oldest := ticketArgs(req.Unanswered)
	args := make([]any, 0, 14+5*len(req.Tags))
	args = append(args, req.ID, req.Incarnation, req.Seq, req.Nonce, req.LastSeq, req.LastNonce, req.LastTime,
		req.Revision, req.Lease.Milliseconds(), consensus.Removal(longest).Microseconds(), policy, unanswered, oldest, life)
	for _, t := range req.Tags {
		args = append(args, t.Tag, int64(t.InUse), int64(t.Wanted), int64(t.Demand), t.PoolSize)
	}
	return args
}

// leaveArgs returns the arguments of the leave script.
func leaveArgs(l *consensus.Leave) []any {
	unanswered, oldest := ticketArgs(l.Unanswered)
	return []any{l.ID, l.Incarnation, l.Seq, l.LastSeq, l.LastNonce, unanswered, oldest}
}

// ticketArgs returns the unanswered requests in the form that sent_by of
// record.lua looks them up in, and the number of the oldest if older ones may have
// been left out, else 0.
func ticketArgs(tickets []consensus.Ticket) (list string, oldest uint64) {
	if len(tickets) == 0 {
		return "", 0
	}
	b := []byte{' '}
	for _, t := range tickets {
		b = strconv.AppendUint(b, t.Seq, 10)
		b = append(b, ':')
		b = strconv.AppendUint(b, t.Nonce, 10)
		b = append(b, ' ')
	}
	if len(tickets) == consensus.MaxUnanswered {
		oldest = tickets[0].Seq
	}
	return string(b), oldest
}
