package protocol

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// The release before reads a changed quota with an order as one without: it refused unknown fields, and skipped null.
func TestOrdersOfQuotasAreReadByTheReleaseBefore(t *testing.T) {
	order := QuotaOrder{
		Until: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC), Reason: `a "sale"`, By: "ann@desk", ending: overrideEnd{at: 7, left: time.Hour},
	}
	c := QuotaChanges{}.with("acme", &limit.Quota{Total: 50}, order).with("", &limit.Quota{Total: 9}, QuotaOrder{By: "bob"}).
		with("beta", &limit.Quota{Weight: 3}, QuotaOrder{})
	body, err := c.body()
	require.NoError(t, err)
	back, err := parseQuotaChanges(body)
	require.NoError(t, err)
	require.Equal(t, c, back)

	var before struct {
		Tags  map[string]*limit.Quota `json:"tags"`
		Other *limit.Quota            `json:"other"`
	}
	require.NoError(t, decodeStrictly(body, &before))
	quotas := 0
	for name, q := range before.Tags {
		if q != nil {
			quotas++
			require.Equal(t, c.Tags[name], *q)
		}
	}
	require.Equal(t, 2, quotas)
	require.Equal(t, 9, before.Other.Total)

	plain, err := QuotaChanges{}.with("acme", &limit.Quota{Total: 50}, QuotaOrder{}).body()
	require.NoError(t, err)
	require.JSONEq(t, `{"tags":{"acme":{"total":50}}}`, string(plain))
	for _, bad := range []string{
		`\u0001`, `\u0001{`, `\u0001{\"tag\":\"acme\",\"more\":1}`,
		`\u0001{\"tag\":\"acme\",\"left_us\":-1}`, `\u0001{\"by\":\"a\\nb\"}`,
	} {
		_, err := parseQuotaChanges([]byte(`{"tags":{"acme":{"total":50},"` + bad + `":null}}`))
		require.Error(t, err, bad)
	}
	cleared := c.with("acme", nil, QuotaOrder{})
	require.NotContains(t, cleared.Orders, "acme")
}

// As many quotas as before can be changed: authors and reasons give way, and ends do not.
func TestOrdersOfQuotasGiveWay(t *testing.T) {
	var c QuotaChanges
	for i := range maxChangedTags - 1 {
		o := QuotaOrder{By: "ann@desk", Reason: strings.Repeat("r", 100)}
		if i == 0 {
			o.ending.left = time.Hour
		}
		c = c.with(fmt.Sprint("tag", i), &limit.Quota{Total: i + 1}, o)
	}
	body, err := c.body()
	require.NoError(t, err)
	back, err := parseQuotaChanges(body)
	require.NoError(t, err)
	require.Equal(t, c.Tags, back.Tags)
	require.Len(t, back.Orders, 1)
	require.Equal(t, time.Hour, back.Orders["tag0"].ending.left)
}

// Ends do not give way: what no processor could read is refused, with what is allowed.
func TestTooManyOrdersOfQuotasAreRefused(t *testing.T) {
	var c QuotaChanges
	refused := 0
	for i := range maxChangedTags {
		o := QuotaOrder{Reason: "r"}
		if i < 12 {
			o.ending.left = time.Hour
		}
		c = c.with(fmt.Sprint(i), &limit.Quota{Total: 1}, o)
		body, err := c.body()
		if err != nil {
			require.EqualError(t, err, fmt.Sprintf("consensus: Tag is %d changed tags, and ends of 12, allowed: at most 100 together; "+
				"put the others into the configuration", i+1))
			refused++
			continue
		}
		back, err := parseQuotaChanges(body)
		require.NoError(t, err, i)
		require.GreaterOrEqual(t, len(back.Orders), min(i+1, 12))
	}
	require.Equal(t, 12, refused)
}
