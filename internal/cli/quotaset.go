package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/duration"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const (
	budgetsName = "budgets"
	forceName   = "force"
)

// A quotaField is a flag of quota set, read like the setting of that name. put copies it from one quota to another.
type quotaField struct {
	name, usage string
	put         func(to, from *throttle.Quota)
}

var quotaFields = []quotaField{
	{"reserved", "tokens per --per that the tag gets whenever it asks; 0: none", func(to, from *throttle.Quota) { to.Reserved = from.Reserved }},
	{
		"total", "the most that it may use per --per; 0 blocks it, none: no total",
		func(to, from *throttle.Quota) { to.Total, to.Blocked = from.Total, from.Blocked },
	},
	{"burst", "how many tokens of the total can be saved up; 0: what it earns in 100ms", func(to, from *throttle.Quota) { to.Burst = from.Burst }},
	{perName, "the period, 1ms to 744h; that of the limit if it was never set", func(to, from *throttle.Quota) { to.Per = from.Per }},
	{"weight", "its part of what is not reserved, 1 to 1000", func(to, from *throttle.Quota) { to.Weight = from.Weight }},
	{"class", "interactive or batch", func(to, from *throttle.Quota) { to.Class = from.Class }},
	{
		budgetsName, "amounts for calendar windows as in the file, such as [{amount: 5e6, per: day, zone: Europe/Berlin}]; []: none",
		func(to, from *throttle.Quota) { to.Budgets = from.Budgets },
	},
	{
		"hard", "true or false: at most --total in any window of --per; costs 45 % of it with 10s, 12 % with 1m",
		func(to, from *throttle.Quota) { to.Hard = from.Hard },
	},
	{"shadow", "true or false: count what would be refused, and refuse nothing", func(to, from *throttle.Quota) { to.Shadow = from.Shadow }},
}

func quotaFlags() []ucli.Flag {
	flags := []ucli.Flag{
		&ucli.BoolFlag{Name: forceName, Usage: "reserve more than the limit, which scales down all that is reserved"},
		&ucli.StringFlag{Name: forName, Usage: "how long, 1ms to 744h, or none: until it is cleared", DefaultText: "as the last change of the tag, or none"},
		reasonFlag("why: whoever looks at the pool is told"), byFlag(),
	}
	for i := range quotaFields {
		flags = append(flags, &ucli.StringFlag{Name: quotaFields[i].name, Usage: quotaFields[i].usage})
	}
	return flags
}

// readQuota reads the given flags, with the syntax of the quota file.
func readQuota(cmd *ucli.Command) (q throttle.Quota, set []quotaField, err error) {
	var text strings.Builder
	text.WriteString("other:\n")
	for _, f := range quotaFields {
		if !cmd.IsSet(f.name) {
			continue
		}
		value := cmd.String(f.name)
		switch {
		case value == "":
			return q, nil, wrongArguments("%s: --%s is empty, allowed: %s", cmd.FullName(), f.name, f.usage)
		case f.name == budgetsName:
			value = strings.Join(strings.Fields(value), " ") // a single line, like all others
		default:
			value = strconv.QuoteToASCII(value)
		}
		fmt.Fprintf(&text, "  %s: %s\n", f.name, value)
		set = append(set, f)
	}
	if len(set) == 0 {
		return q, nil, wrongArguments("%s: nothing is to be set, allowed: flags such as --total; numathrottle quota clear ends a change", cmd.FullName())
	}
	read, err := config.ParseQuotas([]byte(text.String()))
	if err != nil {
		return q, nil, &kindError{flagFaults(cmd, err), errUsage}
	}
	return read.Other, set, nil
}

// flagFaults converts the faults of a text made of flags to faults of the flags.
func flagFaults(cmd *ucli.Command, err error) error {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	errs := make([]error, len(all))
	for i, err := range all {
		own := limit.FieldError{}
		if read, ok := errors.AsType[*config.QuotaFaultError](err); ok {
			own = read.FieldError
		} else if field, ok := errors.AsType[*limit.FieldError](err); ok {
			own = *field
		}
		if own.Field != "" {
			own.Field = "--" + strings.TrimPrefix(own.Field, "quotas.other.")
			if own.Field == "--quotas" { // all other values are quoted
				own.Field, own.Problem = "--"+budgetsName, "is not as in the file"
				own.Allowed = "such as [{amount: 5e6, per: day}]"
			}
			err = &own
		}
		errs[i] = fmt.Errorf("%s: %w", cmd.FullName(), err)
	}
	return errors.Join(errs...)
}

// noEnd in --for is a change without an end, also after one with an end.
const noEnd = "none"

func (c *CLI) quotaSet(cmd *ucli.Command) (act, error) {
	tag, err := c.tagOf(cmd)
	if err != nil {
		return nil, err
	}
	given, set, err := readQuota(cmd)
	if err != nil {
		return nil, err
	}
	order := protocol.QuotaOrder{Reason: cmd.String(reasonName), By: c.author(cmd)}
	if cmd.String(forName) != noEnd {
		order.Until, err = endOf(cmd)
	}
	return func(ctx context.Context, s *access) (reply, error) {
		if err := s.noPattern(cmd, "TAG", tag); err != nil {
			return reply{}, err
		}
		before, err := s.Quota(ctx, tag)
		if err != nil {
			return reply{}, err
		}
		if !cmd.IsSet(forName) && before.Order.Until.After(time.Now()) { // what no flag names stays
			order.Until = before.Order.Until
			order.Reason = cmp.Or(order.Reason, before.Order.Reason)
		}
		q := before.Quota
		for _, f := range set {
			f.put(&q, &given)
		}
		if err := checkQuota(cmd, q); err != nil {
			return reply{}, err
		}
		replaces := !before.Changed && before.Stranger != "" // a configured quota that this command may not know
		if replaces {                                        // the user may not intend to lose it
			_, _ = fmt.Fprintf(c.Err, "warning: pod %s has other quotas than this command knows: what is configured there for %s is replaced "+
				"as a whole; give the pods' file with --%s to keep the rest of it\n", printable(before.Stranger), tagText(tag), configName)
		}
		if err := s.SetQuotaFor(ctx, tag, q, order, cmd.Bool(forceName)); err != nil {
			return reply{}, err
		}
		o, err := s.Overview(ctx) // it includes the change
		reserved, hard := s.Reserved(&o), ""
		sum := reserved.String()
		if replaces && reserved != nil { // pods tell the sum without it from their next sync on
			sum = "at most " + sum + ", what was configured for this one included"
		}
		if kept := q.Kept(); kept < 1 {
			hard = fmt.Sprintf("; hard leaves it %.3g %% of its total in the long run", 100*kept)
		}
		return reply{json: struct {
			quotaJSON

			Reserved *operate.Reserved `json:"reserved"`
		}{quotaJSON{s.Name, tag, &q, quotaOrderOf(order)}, reserved}, lines: []string{
			fmt.Sprintf("%s %s%s, from the next sync of each pod on; %s%s", tagText(tag), quotaText(&q), endText(order.Until, "", ""), sum, hard),
		}}, err
	}, err
}

// mostTokens is the largest possible limit.
const mostTokens = 1_000_000_000

// checkQuota returns the faults of a quota that do not depend on the limit.
func checkQuota(cmd *ucli.Command, q throttle.Quota) error {
	err := throttle.Quotas{Other: q}.Validate(mostTokens, time.Second)
	if _, tooMuch := errors.AsType[*limit.ReservedError](err); err == nil || tooMuch { // only the pool knows the limit
		return nil
	}
	return &kindError{flagFaults(cmd, err), errUsage}
}

// quotaText formats a quota as in the file; nil is empty.
func quotaText(q *throttle.Quota) string {
	if q == nil {
		return empty
	}
	var parts []string
	add := func(name string, set bool, value any) {
		if set {
			parts = append(parts, fmt.Sprintf("%s: %v", name, value))
		}
	}
	add("reserved", q.Reserved != 0, q.Reserved)
	add("total", q.Total != 0 || q.Blocked, q.Total)
	add("burst", q.Burst != 0, q.Burst)
	add(perName, q.Per != 0, duration.Short(q.Per))
	add("weight", q.Weight != 0, q.Weight)
	add("class", q.Class != "", q.Class)
	var budgets []string
	for _, b := range q.Budgets {
		text := fmt.Sprintf("{amount: %d, per: %s", b.Amount, b.Per)
		if b.Zone != "" {
			text += ", zone: " + b.Zone
		}
		if b.Then != "" {
			text += ", then: " + string(b.Then)
		}
		budgets = append(budgets, text+"}")
	}
	add(budgetsName, len(budgets) > 0, "["+strings.Join(budgets, ", ")+"]")
	add("hard", q.Hard, true)
	add("shadow", q.Shadow, true)
	return "{" + strings.Join(parts, ", ") + "}"
}
