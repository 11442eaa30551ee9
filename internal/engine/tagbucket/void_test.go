package tagbucket

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A void grant ends what was granted before: nothing of it is used, or given back, any more.
func TestVoid(t *testing.T) {
	s := New(Terms{Quota: limit.Quota{Total: 100}.WithDefaults(time.Second), Pooled: true})
	batch := func(n int64, void bool) {
		s.Grant(sharing.TagGrant{Needed: true, Void: void, Batch: sharing.Batch{Tokens: n}}, 0, 1000, 0)
	}
	batch(10, false)
	before, ok := s.Take(1, 4)
	require.True(t, ok)
	batch(3, true)
	require.EqualValues(t, 3, s.AtHand(1))
	s.Return(2, before, 4)
	var r sharing.TagReport
	s.Report(2, 5000, &r)
	require.EqualValues(t, 3, r.Back, "of the new lot alone")
}

// A changed quota counts at once: without a total nothing holds draws back.
func TestSetQuota(t *testing.T) {
	s := New(Terms{Quota: limit.Quota{Total: 100}.WithDefaults(time.Second), Pooled: true})
	require.Zero(t, s.AtHand(1))
	s.SetQuota(limit.Quota{}.WithDefaults(time.Second))
	require.EqualValues(t, Endless, s.AtHand(1))
}

// What a store has forgotten is used to its end, and never given back, however late a call tells that it has not used it.
func TestForgotten(t *testing.T) {
	s := New(Terms{Quota: limit.Quota{Total: 100}.WithDefaults(time.Second), Pooled: true})
	s.Grant(sharing.TagGrant{Needed: true, Batch: sharing.Batch{Tokens: 10}}, 0, 1000, 0)
	before, ok := s.Take(1, 4)
	require.True(t, ok)
	s.Grant(sharing.TagGrant{Needed: true, Forgotten: true}, 0, 0, 0)
	require.EqualValues(t, 6, s.AtHand(1))
	var r sharing.TagReport
	s.Report(500, 5000, &r)
	require.Zero(t, r.Back)
	s.Return(5000, before, 4)
	s.Report(5000, 0, &r)
	require.Zero(t, r.Back, "neither what ran out nor what was returned")
	s.Grant(sharing.TagGrant{Needed: true, Batch: sharing.Batch{Tokens: 3}}, 5000, 6000, 0)
	s.Report(5500, 5000, &r)
	require.EqualValues(t, 3, r.Back)
}
