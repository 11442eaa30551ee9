package limit

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func lines(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func TestValidateGood(t *testing.T) {
	for _, q := range []Quotas{
		{},
		{Tags: map[string]Quota{"a": {}}},
		{Tags: map[string]Quota{"a": {Reserved: 100, Total: 100}}},
		{Tags: map[string]Quota{"a": {Reserved: 6000, Per: time.Minute}}},
		{Tags: map[string]Quota{"a/b": {Reserved: 33}, "b": {Reserved: 33}}, Other: Quota{Reserved: 34}},
		{Tags: map[string]Quota{"a": {Total: 3, Per: 10 * time.Second, Hard: true, Burst: 50}}},
		{Match: []QuotaPattern{{"free/*", Quota{Total: 1e9, Class: ClassBatch, Weight: 1000}}}},
		{Other: Quota{Shadow: true, Budgets: []Budget{
			{Amount: 1, Per: PeriodHour, Zone: "Asia/Kolkata"}, {Amount: 1e15, Per: PeriodDay, Zone: "UTC", Then: ThenFallback}, {
				Amount: 5, Per: PeriodMonth,
				Then: ThenLower,
			},
		}}},
	} {
		require.NoError(t, q.Validate(100, time.Second), "%+v", q)
		require.NoError(t, q.WithDefaults(time.Second).Validate(100, 0), "%+v", q)
	}
	require.NoError(t, Quotas{}.Validate(0, 0), "no quotas need no limit")
}

// Every fault is named, with its value and with what is allowed, and all at once.
func TestValidate(t *testing.T) {
	q := Quotas{
		Tags: map[string]Quota{
			"acme":  {Reserved: -1, Total: -2, Burst: -3, Weight: -4, Class: "low", Per: time.Microsecond},
			"bad\n": {},
			"budgets": {Budgets: []Budget{
				{Amount: 0, Per: "week"}, {Amount: 2e15, Per: PeriodDay, Zone: "Mars/Olympus"}, {Amount: 1, Per: PeriodDay, Zone: "Local", Then: "wait"},
			}},
			"fast":  {Total: 1e9, Per: time.Millisecond},
			"fine":  {Per: time.Second + 1},
			"hard":  {Hard: true},
			"hard2": {Hard: true, Total: 20},
			"hard3": {Hard: true, Total: 2, Per: time.Minute},
			"more":  {Reserved: 9, Total: 8, Weight: 1001},
			"more2": {Reserved: 9, Total: 8},
			"save":  {Burst: 5},
		},
		Match: []QuotaPattern{{Tag: "[", Quota: Quota{Reserved: 1}}, {Tag: "x*"}, {Tag: "x*"}, {}},
		Other: Quota{Total: 1e9 + 1},
	}
	require.Equal(t, []string{
		`quotas.tags.acme.per is 1µs, allowed: 1ms to 744h in whole microseconds`,
		`quotas.tags.acme.reserved is -1, allowed: 0 to the limit`,
		`quotas.tags.acme.total is -2, allowed: 0 (blocked) to 1000000000, or none`,
		`quotas.tags.acme.burst is -3, allowed: 0 (100 ms worth of total) to 1000000000`,
		`quotas.tags.acme.weight is -4, allowed: 1 to 1000, or 0 for 1`,
		`quotas.tags.acme.class is "low", allowed: interactive or batch`,
		`quotas.tags has the name "bad\n", allowed: 1 to 64 bytes of UTF-8 without control characters`,
		`quotas.tags.budgets.budgets[0].amount is 0, allowed: 1 to 1000000000000000`,
		`quotas.tags.budgets.budgets[0].per is "week", allowed: hour, day or month`,
		`quotas.tags.budgets.budgets[1].amount is 2000000000000000, allowed: 1 to 1000000000000000`,
		`quotas.tags.budgets.budgets[1].zone is "Mars/Olympus", allowed: ` + allowedZone,
		`quotas.tags.budgets.budgets[2].per is day once more, allowed: at most one budget for each of hour, day and month`,
		`quotas.tags.budgets.budgets[2].zone is "Local", allowed: ` + allowedZone,
		`quotas.tags.budgets.budgets[2].then is "wait", allowed: refuse, fallback or batch`,
		`quotas.tags.fast.total per 1ms is 1000000000, allowed: at most 1000000000 tokens per second`,
		`quotas.tags.fine.per is 1.000000001s, allowed: 1ms to 744h in whole microseconds`,
		`quotas.tags.hard.hard is true, allowed: false without total`,
		`quotas.tags.hard2.per is 1s, allowed: 10s or more with hard`,
		`quotas.tags.hard3.total is 2, allowed: 3 or more with hard`,
		`quotas.tags.more.weight is 1001, allowed: 1 to 1000, or 0 for 1`,
		`quotas.tags.more2.reserved is 9, allowed: at most total, which is 8`,
		`quotas.tags.save.burst is 5, allowed: 0 without total`,
		`quotas.match[0].tag is "[", allowed: a pattern such as free/*, as path.Match takes it`,
		`quotas.match[0].reserved is 1, allowed: 0, for any number of tags may match`,
		`quotas.match[2].tag is "x*", as that of quotas.match[1] is, which counts, allowed: each pattern once`,
		`quotas.match[3].tag has the name "", allowed: 1 to 64 bytes of UTF-8 without control characters`,
		`quotas.other.total is 1000000001, allowed: 0 (blocked) to 1000000000, or none`,
	}, lines(q.Validate(100, time.Second)))

	require.Equal(t, []string{`quotas are set, but there is no limit, allowed: a limit with quotas: max of 1 or more`}, lines(q.Validate(0, 0)))
}

// What is reserved together is compared with the limit in one unit.
func TestValidateReserved(t *testing.T) {
	q := Quotas{
		Tags:  map[string]Quota{"a": {Reserved: 30}, "b": {Reserved: 3600, Per: time.Minute}},
		Other: Quota{Reserved: 10},
	}
	require.InEpsilon(t, 100, q.ReservedRate(0), 1e-9)
	require.NoError(t, q.Validate(100, 0))
	err := q.Validate(99, 0)
	require.EqualError(t, err, `quotas reserve 100 tokens per second together, allowed: at most the limit, which is 99`)
	reserved, ok := errors.AsType[*ReservedError](err)
	require.True(t, ok)
	require.InEpsilon(t, 99, reserved.Limit, 1e-9)
	// What says no period has that of the limit: 0.5 + 60 + 0.17 a second.
	require.EqualError(t, q.Validate(3599, time.Minute), `quotas reserve 60.6667 tokens per second together, allowed: at most the limit, which is 59.9833`)
}

func TestValidateMany(t *testing.T) {
	q := Quotas{Tags: map[string]Quota{}}
	for i := range 1001 {
		q.Tags[fmt.Sprint(i)] = Quota{}
	}
	for i := range 101 {
		q.Match = append(q.Match, QuotaPattern{Tag: fmt.Sprint(i)})
	}
	require.Equal(t, []string{
		`quotas.tags has 1001 tags, allowed: at most 1000; patterns in match take any number`,
		`quotas.match has 101 patterns, allowed: at most 100`,
	}, lines(q.Validate(1, 0)))
	delete(q.Tags, "0")
	q.Match = q.Match[1:]
	require.NoError(t, q.Validate(1, 0))
}

// A hard limit grants less than its max, and what is reserved must fit that.
func TestValidateHard(t *testing.T) {
	q := Quotas{Tags: map[string]Quota{"a": {Reserved: 5000, Per: time.Minute}}}
	require.NoError(t, q.Validate(6000, time.Minute))
	require.NoError(t, q.ValidateHard(6000, time.Minute, 84))
	err := q.ValidateHard(6000, time.Minute, 83)
	require.EqualError(t, err, `quotas reserve 83.3333 tokens per second together, allowed: at most what the hard limit grants in the long run, which is 83`)
	reserved, ok := errors.AsType[*ReservedError](err)
	require.True(t, ok)
	require.Equal(t, ReservedError{Reserved: 5000.0 / 60, Limit: 83, Hard: true}, *reserved)
	require.NoError(t, Quotas{}.ValidateHard(0, 0, 0), "no quotas need no limit")
}
