package redisstore

import (
	_ "embed" // the scripts
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

//go:embed lua/expiry.lua
var expiryLua string

//go:embed lua/server.lua
var serverLua string

//go:embed lua/record.lua
var recordLua string

//go:embed lua/document.lua
var documentLua string

//go:embed lua/permit.lua
var permitLua string

//go:embed lua/issue.lua
var issueLua string

//go:embed lua/tagbuckets.lua
var tagBucketsLua string

//go:embed lua/tagclaims.lua
var tagClaimsLua string

//go:embed lua/tagslots.lua
var tagSlotsLua string

//go:embed lua/reserve.lua
var reserveLua string

//go:embed lua/sync.lua
var syncLua string

//go:embed lua/leave.lua
var leaveLua string

//go:embed lua/save.lua
var saveLua string

//go:embed lua/setspent.lua
var setSpentLua string

var (
	syncScript    = newScript(serverLua + expiryLua + permitLua + tagClaimsLua + recordLua + issueLua + documentLua + tagBucketsLua + tagSlotsLua + syncLua)
	leaveScript   = newScript(serverLua + permitLua + tagClaimsLua + recordLua + leaveLua)
	saveScript    = newScript(serverLua + permitLua + tagClaimsLua + recordLua + documentLua + saveLua)
	reserveScript = newScript(reserveLua)
	spentScript   = newScript(serverLua + permitLua + tagClaimsLua + recordLua + issueLua + documentLua + tagBucketsLua + setSpentLua)
)

// sources maps the script names at the server to the scripts, to find the line that the server complains about.
var sources = map[string]string{}

func newScript(source string) *redis.Script {
	script := redis.NewScript(source)
	sources[script.Hash()] = source
	return script
}

// syncArgs returns the arguments of the sync script, in the order of sync.lua. The client writes integers in decimal, and the script relies
// on that. From the server's time expires on, in microseconds, the request is not executed; 0 means unknown.
func syncArgs(req *driver.Request, longest time.Duration, wantsPolicy bool, life string, expires int64) []any {
	remembered := ticketsArg(req.Unanswered, driver.Ticket{Seq: req.LastSeq, Nonce: req.LastNonce}, req.Recalled)
	args := make([]any, 0, 28+2*len(req.Dead)+4*len(req.Documents)+len(req.Draws))
	args = append(args, req.ID, req.Incarnation, req.Seq, req.Nonce, req.LastSeq, req.LastTime,
		req.Revision, req.Lease.Milliseconds(), wire.Removal(longest).Microseconds(), flagArg(wantsPolicy), remembered, life,
		int64(req.Spacing), req.SpacingBy, flagArg(req.Strict), micros(req.Reach),
		(wire.Removal(longest) + req.Outlasts).Microseconds(), len(req.Documents), len(req.Dead), expires)
	for _, d := range req.Dead {
		args = append(args, d.Incarnation, ticketsArg(d.Unanswered, d.Last))
	}
	for i := range req.Documents {
		args = append(args, saveArgs(&req.Documents[i])...)
	}
	note := req.Note
	if req.Busy != "" {
		note += "\x00" + req.Busy
	}
	args = append(args, int64(req.InUse), int64(req.Wanted), int64(req.Demand), req.PoolSize, note, tagSlotsArg(req.TagSlots), req.TagSlotsBy)
	return appendDraws(args, req.Draws)
}

// micros rounds up.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// saveArgs returns the arguments of the save script: one document.
func saveArgs(d *driver.DocumentReport) []any {
	return []any{d.Name, uint64(d.Version), uint64(d.Base), d.Body}
}

func flagArg(set bool) int {
	if set {
		return 1
	}
	return 0
}

// reserveArgs returns the arguments of the reservation script, in the order of reserve.lua. expires is as in syncArgs.
func reserveArgs(req *driver.Reserve, longest time.Duration, life string, expires int64) []any {
	args := []any{
		req.Count, int64(req.Spacing), req.Ahead, req.Revision / halfRevision, req.Revision % halfRevision,
		wire.Removal(longest).Microseconds(), life, expires,
	}
	if req.Return != 0 {
		args = append(args, req.Return/halfRevision, req.Return%halfRevision, req.Unused)
	}
	return args
}

// halfRevision splits revisions, which have 64 bits, into numbers that the server's doubles hold exactly.
const halfRevision = 10_000_000_000

// leaveArgs returns the arguments of the leave script.
func leaveArgs(l *driver.Leave) []any {
	remembered := ticketsArg(l.Unanswered, driver.Ticket{Seq: l.LastSeq, Nonce: l.LastNonce})
	return []any{l.ID, l.Incarnation, l.Seq, remembered}
}

// ticketsArg lists requests in the form that sent_by of record.lua searches.
func ticketsArg(unanswered []driver.Ticket, others ...driver.Ticket) string {
	b := make([]byte, 1, 32*(len(unanswered)+len(others))+1)
	b[0] = ' '
	for _, list := range [][]driver.Ticket{unanswered, others} {
		for _, t := range list {
			b = strconv.AppendUint(b, t.Seq, 10)
			b = append(b, ':')
			b = strconv.AppendUint(b, t.Nonce, 10)
			b = append(b, ' ')
		}
	}
	return string(b)
}
