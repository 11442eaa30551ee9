package protocol

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// workedExample plays the pool of the package documentation: A joins at 0 s, B at 1 s, C and D at
// 2.5 s. D dies at 5 s, C leaves at 7.5 s, and from 8.5 s on B can use no more than 10 %. Messages
// take no time. It returns a line for each sync that changed a share in force or a claim.
func workedExample(t *testing.T) []string {
	t.Helper()
	type player struct {
		*Processor
		id         string
		joins, end time.Duration
	}
	var pool []*player
	for i, at := range [][2]time.Duration{
		{0, time.Hour}, {time.Second, time.Hour}, {2500 * time.Millisecond, 7500 * time.Millisecond}, {2500 * time.Millisecond, 5 * time.Second},
	} {
		id := string(rune('A' + i))
		pool = append(pool, &player{NewProcessor(ProcessorConfig{Pool: "pool", ID: id}, "1"), id, at[0], at[1]})
	}
	var r driver.Record
	at := func(now time.Duration) driver.At { return driver.At{Now: t0 + now.Microseconds()} }
	lines, last := []string{"time   sync  in use  wants  answer    shares:  A    B    C    D    claims:  A    B    C    D"}, ""
	note := func(now time.Duration, what string) {
		state := "           "
		for _, p := range pool {
			share := fmt.Sprintf("%4s", percent(p.Held(now)))
			if now >= p.end && p.state != StateLeft {
				share = "   -"
			}
			state += share + " "
		}
		state += "            "
		for i := range r.Rows {
			state += fmt.Sprintf("%4s ", percent(r.Rows[i].Claim))
		}
		if state = strings.TrimRight(state, " "); state != last {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("%5.2f  %-27s%s", now.Seconds(), what, state), " "))
		}
		last = state
	}
	for now, nonce := time.Duration(0), uint64(1); ; nonce++ {
		var next *player
		due := 10 * time.Second
		for _, p := range pool {
			at := p.joins
			if p.seq > 0 {
				at = max(now, p.Next(now, 1))
			}
			if at < due && at < p.end {
				next, due = p, at
			}
		}
		if c := pool[2]; c.state != StateLeft && due >= c.end {
			leave := c.Leave(c.end)
			now = c.end
			r.Leave(&leave, at(now))
			note(now, "C leaves")
			continue
		}
		if next == nil {
			return lines
		}
		now = due
		demand := driver.Whole
		if next.id == "B" && now >= 8500*time.Millisecond {
			demand = driver.Whole / 10
		}
		req := next.Request(now, nonce, Observation{Demand: demand})
		ans, _ := r.Sync(&req, at(now))
		require.NoError(t, next.Take(now, ans, "2"))
		note(now, fmt.Sprintf("%-6s%4s %7s %7s", next.id, percent(req.InUse), percent(req.Wanted), percent(ans.Share)))
		now++
	}
}

func percent(s driver.Share) string { return fmt.Sprintf("%.0f%%", 100*s.Fraction()) }

// The table of the package documentation is what the code does.
func TestTheWorkedExampleOfTheDocumentation(t *testing.T) {
	doc, err := os.ReadFile("../../pkg/consensus/doc.go")
	require.NoError(t, err)
	table := strings.Join(workedExample(t), "\n//\t")
	found := strings.Contains(string(doc), "//\t"+table+"\n") // not require.Contains, which prints all of doc.go
	require.True(t, found, "doc.go lacks:\n\n%s", strings.ReplaceAll(table, "//\t", ""))
}
