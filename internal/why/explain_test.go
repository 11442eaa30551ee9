package why

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

var (
	now  = time.Date(2026, 3, 4, 11, 0, 0, 0, time.UTC)
	noon = now.Add(time.Hour)
)

// pool is one of 400/s in which pods stand so.
func pool(pods ...Pod) State {
	return State{Pool: "p", Now: now, Limit: "400/s", PerSecond: 400, Pods: pods}
}

func with(s State, change func(s *State)) State {
	change(&s)
	return s
}

// A stand is a pod that holds callers back.
func stand(id string, r limit.Reason, tag string, waiting int, h sharing.Hold) Pod {
	return Pod{ID: id, Share: .5, Used: .5, Waiting: waiting, Reason: r, Tag: tag, Hold: h}
}

func with4(h sharing.Hold) sharing.Hold {
	h.Tags = 4
	return h
}

func of(pattern string, p Pod) Pod {
	p.Pattern = pattern
	return p
}

func hung(id string, share float64) SilentPod {
	return SilentPod{id, share, 11 * time.Second, 3200 * time.Millisecond}
}

func silent(s State, pods ...SilentPod) State {
	s.Silent = pods
	return s
}

func TestExplain(t *testing.T) {
	idle := Pod{ID: "pod-9", Share: .25}
	full := stand("pod-0", limit.ReasonLimit, "", 9, sharing.Hold{Callers: 9})
	full2 := stand("pod-1", limit.ReasonLimit, "", 5, sharing.Hold{Callers: 5})
	acme := sharing.Hold{Callers: 12, Longest: 3200 * time.Millisecond, Rate: 60}
	only := func(r limit.Reason, tag string, h sharing.Hold) State {
		return pool(stand("pod-0", r, tag, h.Callers, h), idle)
	}
	two := sharing.Hold{Callers: 2}
	self := func(s State, me Self) State { return with(s, func(s *State) { me.ID = "pod-0"; s.Self = &me }) }
	failed := func(s State, text string) State { return with(s, func(s *State) { s.Failure = text }) }
	for name, c := range map[string]struct {
		state State
		want  string
		cause string
		level Level
	}{
		"no demand": {pool(idle, idle), "nothing holds callers back", "none", Usual},
		"busy, and nobody waits": {
			pool(stand("pod-0", limit.ReasonLimit, "", 0, sharing.Hold{}), idle), "nothing holds callers back", "none", Usual,
		},
		"nobody": {pool(), "nobody is in the pool", "nobody", Nobody},
		"all have died": {
			with(pool(), func(s *State) { s.Gone = 3 * time.Minute }),
			"no pod has asked the store for 3 min: they have ended, or cannot reach it", "nobody", Nobody,
		},
		"a silent pod, and the rest of the limit is used": {
			silent(pool(stand("a", limit.ReasonLimit, "", 40, sharing.Hold{Callers: 40})), hung("enrich-1", .26)),
			"enrich-1 has been silent for 11 s; its share of 26 % may be unused for 4 s more; 40 callers wait", "silent", Broken,
		},
		"a silent pod, and the other slots are taken": {
			silent(State{Pool: "p", Now: now, Slots: 10, Pods: []Pod{
				{ID: "a", Share: .5, Used: .5, Reason: limit.ReasonInFlight, Waiting: 3, Hold: sharing.Hold{Callers: 3}},
			}}, hung("enrich-1", .5)),
			"enrich-1 has been silent for 11 s; its share of 50 % may be unused for 4 s more; 3 callers wait", "silent", Broken,
		},
		"frozen, and one pod's slots are taken": {
			State{Pool: "p", Now: now, Slots: 10, Frozen: 9 * time.Second, FrozenBy: driver.FreezeLostRow, Pods: []Pod{
				{ID: "a", Share: .5, Used: .5, Reason: limit.ReasonInFlight, Waiting: 3, Hold: sharing.Hold{Callers: 3}}, {ID: "b", Share: .5},
			}},
			"no share grows for 9 s, for the store has lost what it promised to a pod; 3 callers wait", "frozen", Broken,
		},
		"a silent pod, and nobody waits": {
			silent(pool(idle), hung("enrich-1", .26)), "enrich-1 has been silent for 11 s; its share of 26 % may be unused for 4 s more", "silent", Broken,
		},
		"a silent pod without a share": {silent(pool(idle), hung("enrich-1", 0)), "enrich-1 has been silent for 11 s", "silent", Broken},
		"a silent pod, and another cause": {
			silent(only(limit.ReasonQuota, "acme", acme), hung("enrich-1", .26)),
			"enrich-1 has been silent for 11 s; its share of 26 % may be unused for 4 s more; acme is held at its rate cap of 60/s; 12 callers wait, " +
				"the longest for 3.2 s", "quota", Held,
		},
		"a silent pod, and a joiner without a share": {
			silent(pool(stand("pod-0", limit.ReasonNoShare, "", 2, two)), hung("enrich-1", 1)),
			"enrich-1 has been silent for 11 s; its share of 100 % may be unused for 4 s more; " +
				"pod-0 has no share of the limit yet, and gets one with its next syncs; 2 callers wait", "no_share", Broken,
		},
		"silent pods": {
			silent(pool(full), hung("b", .2), SilentPod{"c", .1, 5 * time.Second, 10 * time.Second}),
			"b and c have been silent for up to 11 s; their shares of 30 % may be unused for up to 10 s more; 9 callers wait", "silent", Broken,
		},
		"many silent pods": {
			silent(pool(full), hung("b", .1), hung("c", .1), hung("d", .1), hung("e", .1)),
			"4 of 5 pods have been silent for up to 11 s; their shares of 40 % may be unused for up to 4 s more; 9 callers wait", "silent", Broken,
		},
		"the only pod is silent": {
			silent(pool(), hung("a", 1)),
			"a, the only pod, has been silent for 11 s: it hangs, was killed, or cannot reach the store", "silent", Broken,
		},
		"all pods are silent": {
			silent(pool(), hung("a", .5), hung("b", .5)),
			"all 2 pods have been silent for up to 11 s: they hang, were killed, or cannot reach the store", "silent", Broken,
		},
		"a silent pod, and a pause": {
			with(silent(pool(full), hung("b", .2)), func(s *State) { s.Pauses = []limit.Paused{{By: "ann"}} }),
			"paused by ann; 9 callers wait: numathrottle resume --pool p", "pause", Broken,
		},
		"no limit": {State{Now: now, Pods: []Pod{idle}}, "there is no limit: everything passes at once", "none", Usual},
		"exempt calls alone": {
			pool(Pod{ID: "pod-0", Share: 1, Used: 1.5}), "nothing holds callers back", "none", Usual,
		},
		"callers that pods give no reason for": {pool(Pod{ID: "a", Waiting: 3}), "3 callers wait, and pods do not say what for", "other", Held},
		"limit":                                {pool(full, full2), "the limit of 400/s is used in full; 14 callers wait", "limit", Held},
		"limit, and callers that do not wait": {
			pool(stand("a", limit.ReasonLimit, "", 0, sharing.Hold{}), stand("b", limit.ReasonLimit, "", 0, sharing.Hold{})),
			"the limit of 400/s is used in full", "limit", Held,
		},
		"override": {
			with(pool(full, full2), func(s *State) { s.Override = &Order{"ann", noon} }),
			"the limit of 400/s, an override by ann until 12:00 UTC, is used in full; 14 callers wait: numathrottle limit clear --pool p", "limit", Held,
		},
		"override without an end": {
			with(pool(full, full2), func(s *State) { s.Override = &Order{} }),
			"the limit of 400/s, an override, is used in full; 14 callers wait: numathrottle limit clear --pool p", "limit", Held,
		},
		"settings disagree": {
			with(pool(full, full2), func(s *State) { s.Disagree = true }),
			"the limit of 400/s, the lowest that pods are configured with, is used in full; 14 callers wait", "limit", Held,
		},
		"one hot pod": {
			pool(full, idle), "pod-0 has used its share of 50 %, while the pool uses 50 % of the limit of 400/s; 9 callers wait", "limit", Held,
		},
		"two hot pods of three": {
			pool(
				Pod{ID: "a", Share: .2, Used: .2, Waiting: 1, Reason: limit.ReasonLimit, Hold: sharing.Hold{Callers: 1}},
				Pod{ID: "b", Share: .2, Used: .2, Waiting: 1, Reason: limit.ReasonLimit, Hold: sharing.Hold{Callers: 1}}, idle,
			),
			"2 of 3 pods have used their shares of 40 %, while the pool uses 40 % of the limit of 400/s; 2 callers wait", "limit", Held,
		},
		"ramp": {
			with(pool(full, full2), func(s *State) { s.Ramp = 10.5 }),
			"the limit of 400/s ramps up, and is at 10.5/s; 14 callers wait", "limit", Held,
		},
		"a ramp at its end": {
			with(pool(full, full2), func(s *State) { s.Ramp = 400 }),
			"the limit of 400/s is used in full; 14 callers wait", "limit", Held,
		},
		"debt": {
			only(limit.ReasonLimit, "", sharing.Hold{Callers: 2, Owed: 12 * time.Second}),
			"calls at pod-0 used more than they drew, which takes 12 s to earn; 2 callers wait: numathrottle debt forgive --pool p", "limit", Held,
		},
		"adaptive": {
			with(only(limit.ReasonAdaptive, "", two), func(s *State) { s.Lowered = .3 }),
			"the called service refuses calls, and the limit of 400/s is at 120/s; 2 callers wait", "adaptive", Held,
		},
		"adaptive, by an unknown ceiling": {
			only(limit.ReasonAdaptive, "", two),
			"the called service refuses calls, and the limit of 400/s is lower than configured; 2 callers wait", "adaptive", Held,
		},
		"in flight": {
			State{Pool: "p", Now: now, Slots: 30, Pods: []Pod{stand("a", limit.ReasonInFlight, "", 3, sharing.Hold{Callers: 3})}},
			"all 30 calls in flight are taken; 3 callers wait", "in_flight", Held,
		},
		"in flight, of one tag": {
			State{Pool: "p", Now: now, Slots: 30, Pods: []Pod{
				stand("a", limit.ReasonQuota, "acme", 3, sharing.Hold{Callers: 3, Tags: 1, Rate: 4}),
			}},
			"acme has 4 of 4 calls in flight; 3 callers wait", "quota", Held,
		},
		"in flight, on one of two pods": {
			State{Pool: "p", Now: now, Slots: 10, Pods: []Pod{
				{ID: "a", Share: .5, Used: .5, Reason: limit.ReasonInFlight, Waiting: 3, Hold: sharing.Hold{Callers: 3}}, {ID: "b", Share: .5},
			}},
			"a has used its share of 50 %, while the pool uses 50 % of 10 calls in flight; 3 callers wait", "in_flight", Held,
		},
		"strict": {
			only(limit.ReasonSlotsTaken, "", two), "as many tokens are reserved ahead as may be, of the limit of 400/s; 2 callers wait", "slots_taken", Held,
		},
		"a small share of a hard limit": {
			only(limit.ReasonShareTooSmall, "", sharing.Hold{Callers: 1}),
			"the share of pod-0 is too small to grant a call at once, for the limit is hard: run fewer pods, or use a longer period; 1 caller waits",
			"share_too_small", Broken,
		},
		"no share": {
			only(limit.ReasonNoShare, "", two),
			"pod-0 has no share of the limit yet, and gets one with its next syncs; 2 callers wait", "no_share", Broken,
		},
		"a pod's store": {only(limit.ReasonStoreLost, "", two), "pod-0 cannot reach the store: look at its log; 2 callers wait", "store_lost", Broken},
		"class alone":   {only(limit.ReasonClass, "", two), "tags of a higher class use the limit of 400/s; 2 callers wait", "class", Held},
		"too large": {
			only(limit.ReasonTooLarge, "", two),
			"a call at pod-0 costs more than one may ever draw: raise the limit's burst; 2 callers wait", "too_large", Broken,
		},
		"local pause": {
			only(limit.ReasonPause, "", two), "pod-0 holds calls back: the called service wants to be left alone; 2 callers wait", "pause", Held,
		},
		"a reason of a later release": {only("tides", "", two), "pod-0 holds calls back (tides); 2 callers wait", "other", Held},
		"call above a quota that was changed": {
			with(only(limit.ReasonTooLarge, "acme", sharing.Hold{}), func(s *State) { s.Quotas = map[string]Order{"acme": {"ann", noon}} }),
			"a call of acme costs more than its quota can ever grant, a change by ann until 12:00 UTC: numathrottle quota clear acme --pool p",
			"too_large", Broken,
		},
		"call above a quota": {
			only(limit.ReasonTooLarge, "acme", sharing.Hold{}),
			"a call of acme costs more than its quota can ever grant: raise its total, burst or budget", "too_large", Broken,
		},
		"cap that was changed": {
			with(only(limit.ReasonQuota, "acme", acme), func(s *State) { s.Quotas = map[string]Order{"acme": {"ann", noon}} }),
			"acme is held at its rate cap of 60/s, a change by ann until 12:00 UTC; 12 callers wait, the longest for 3.2 s: " +
				"numathrottle quota clear acme --pool p", "quota", Held,
		},
		"cap of all others that was changed": {
			with(only(limit.ReasonQuota, protocol.TagOthers, two), func(s *State) { s.Quotas = map[string]Order{protocol.TagOthers: {}} }),
			"all other tags are held at their rate cap, a change; 2 callers wait: numathrottle quota clear --other --pool p", "quota", Held,
		},
		"cap": {
			only(limit.ReasonQuota, "acme", acme), "acme is held at its rate cap of 60/s; 12 callers wait, the longest for 3.2 s", "quota", Held,
		},
		"cap of a hash": {
			only(limit.ReasonQuota, "#0d5f3a9c21", sharing.Hold{Callers: 1, Longest: 90 * time.Second}),
			"tag #0d5f3a9c21 is held at its rate cap; 1 caller waits, for 2 min", "quota", Held,
		},
		"cap of all others": {only(limit.ReasonQuota, protocol.TagOthers, two), "all other tags are held at their rate cap; 2 callers wait", "quota", Held},
		"blocked": {
			only(limit.ReasonQuota, "acme", sharing.Hold{Callers: 2, Blocked: true}),
			"acme is blocked by a total of 0; 2 callers wait", "quota", Broken,
		},
		"budget": {
			only(limit.ReasonBudget, "acme", sharing.Hold{Callers: 2, Left: 13 * time.Hour}),
			"acme has spent its budget until 2026-03-05 00:00 UTC; 2 callers wait", "budget", Held,
		},
		"budget of all others": {only(limit.ReasonBudget, protocol.TagOthers, sharing.Hold{}), "all other tags have spent their budget", "budget", Held},
		"names": {
			only(limit.ReasonNames, "#0d5f3a9c21", two),
			"more names of a pattern are in use than are told apart: tag #0d5f3a9c21 shares a quota with others; 2 callers wait", "names", Held,
		},
		"class": {
			only(limit.ReasonClass, "acme", two),
			"acme waits while tags of a higher class use the limit of 400/s; 2 callers wait", "class", Held,
		},
		"a tag's service": {only(limit.ReasonAdaptive, "acme", two), "the called service refuses calls of acme; 2 callers wait", "adaptive", Held},
		"budgets to be had": {
			only(limit.ReasonNoShare, "acme", two),
			"acme has no share of its budgets yet, which are not spent; 2 callers wait", "no_share", Broken,
		},
		"a name with escape": {only(limit.ReasonQuota, "\x1b[2J", two), `"\x1b[2J" is held at its rate cap; 2 callers wait`, "quota", Held},
		"pods that disagree: most callers": {
			pool(full, stand("pod-1", limit.ReasonQuota, "acme", 12, acme), stand("pod-2", limit.ReasonNoShare, "", 1, sharing.Hold{Callers: 1})),
			"acme is held at its rate cap of 60/s; 12 of 22 callers wait for it, the longest for 3.2 s", "quota", Held,
		},
		"the same tag at two pods": {
			pool(stand("a", limit.ReasonQuota, "acme", 12, acme),
				stand("b", limit.ReasonQuota, "acme", 3, sharing.Hold{Callers: 3, Longest: 5 * time.Second, Rate: 60})),
			"acme is held at its rate cap of 60/s; 15 callers wait, the longest for 5.0 s", "quota", Held,
		},
		"several tags": {
			pool(stand("a", limit.ReasonQuota, "acme", 12, acme), stand("b", limit.ReasonQuota, "zeta", 3, sharing.Hold{Callers: 3, Rate: 7, Tags: 1})),
			"acme and zeta are held at their rate caps; 15 callers wait, the longest for 3.2 s", "quota", Held,
		},
		"more tags than pods name": {
			pool(stand("a", limit.ReasonQuota, "acme", 12, with4(acme)), idle),
			"4 tags, such as acme, are held at their rate caps; 12 callers wait, the longest for 3.2 s", "quota", Held,
		},
		"a tag of a pattern": {
			pool(of("free/*", stand("a", limit.ReasonQuota, "#0d5f3a9c21", 12, acme)), idle),
			"a tag of free/* is held at its rate cap of 60/s; 12 callers wait, the longest for 3.2 s", "quota", Held,
		},
		"more tags, and the worst goes by a pattern": {
			pool(of("free/*", stand("a", limit.ReasonQuota, "#0d5f3a9c21", 12, with4(acme))), idle),
			"4 tags, such as a tag of free/*, are held at their rate caps; 12 callers wait, the longest for 3.2 s", "quota", Held,
		},
		"budgets of several tags": {
			pool(stand("a", limit.ReasonBudget, "acme", 2, two), stand("b", limit.ReasonBudget, "zeta", 2, two)),
			"acme and zeta have spent their budgets; 4 callers wait", "budget", Held,
		},
		"budgets of several tags that end at other times": {
			pool(stand("a", limit.ReasonBudget, "acme", 2, sharing.Hold{Callers: 2, Left: time.Hour}),
				stand("b", limit.ReasonBudget, "zeta", 2, sharing.Hold{Callers: 2, Left: 13 * time.Hour})),
			"acme (until 12:00 UTC) and zeta (until 2026-03-05 00:00 UTC) have spent their budgets; 4 callers wait", "budget", Held,
		},
		"one budget at several pods, and more tags": {
			pool(stand("a", limit.ReasonBudget, "acme", 2, sharing.Hold{Callers: 2, Left: time.Hour}),
				stand("b", limit.ReasonBudget, "acme", 2, with4(sharing.Hold{Callers: 2, Left: time.Hour}))),
			"4 tags, such as acme (until 12:00 UTC), have spent their budgets; 4 callers wait", "budget", Held,
		},
		"the limit at the moment of a sync alone": {
			pool(Pod{ID: "a", Share: .5, Used: .2, Waiting: 5, Reason: limit.ReasonLimit, Hold: sharing.Hold{Callers: 5}},
				stand("b", limit.ReasonQuota, "acme", 3, sharing.Hold{Callers: 3})),
			"acme is held at its rate cap; 3 of 8 callers wait for it", "quota", Held,
		},
		"the limit at a moment, and nothing else": {
			pool(Pod{ID: "a", Share: .5, Used: .2, Waiting: 5, Reason: limit.ReasonLimit, Hold: sharing.Hold{Callers: 5}}, idle),
			"calls at a wait for their next tokens, while the pool uses 20 % of the limit of 400/s; 5 callers wait", "limit", Held,
		},
		"a pod of an earlier release": {
			pool(stand("a", limit.ReasonQuota, "acme", 12, sharing.Hold{})), "acme is held at its rate cap; 12 callers wait", "quota", Held,
		},
		"pause": {
			with(pool(full, full2), func(s *State) {
				s.Pods[0].Waiting, s.Pods[1].Waiting = 0, 0
				s.Pauses = []limit.Paused{{By: "alice", Until: noon}}
			}),
			"paused by alice until 12:00 UTC: numathrottle resume --pool p", "pause", Broken,
		},
		"pause without an end": {
			with(pool(full), func(s *State) { s.Pool, s.Pauses = "a b's", []limit.Paused{{Reason: "night\nshift"}} }),
			`paused ("night\nshift"); 9 callers wait: numathrottle resume --pool 'a b'\''s'`, "pause", Broken,
		},
		"a pause that is over": {
			with(pool(full, full2), func(s *State) { s.Pauses = []limit.Paused{{By: "alice", Until: now}} }),
			"the limit of 400/s is used in full; 14 callers wait", "limit", Held,
		},
		"a pause of a tag that nobody asks for": {
			with(pool(idle), func(s *State) { s.Pauses = []limit.Paused{{Tag: "gpt-4", By: "ann", Until: noon.Add(5 * time.Second)}} }),
			"tag gpt-4 is paused by ann until 12:00:05 UTC: numathrottle resume --pool p --tag gpt-4", "pause", Broken,
		},
		"a pause of a tag": {
			with(only(limit.ReasonPause, "gpt-4", two), func(s *State) { s.Pauses = []limit.Paused{{Tag: "gpt-4", By: "ann"}} }),
			"tag gpt-4 is paused by ann; 2 callers wait: numathrottle resume --pool p --tag gpt-4", "pause", Broken,
		},
		"a pause of a tag, and the limit": {
			with(pool(full, full2), func(s *State) { s.Pauses = []limit.Paused{{Tag: "gpt-4"}} }),
			"the limit of 400/s is used in full; 14 callers wait", "limit", Held,
		},
		"new pool": {
			with(pool(Pod{ID: "a", Waiting: 3, Reason: limit.ReasonFrozen}), func(s *State) {
				s.Frozen, s.FrozenBy = 8400*time.Millisecond, driver.FreezeNewRecord
			}),
			"new pool: first tokens in 9 s; 3 callers wait", "frozen", Broken,
		},
		"new pool without callers": {
			with(pool(Pod{ID: "a"}), func(s *State) { s.Frozen, s.FrozenBy = 9*time.Second, driver.FreezeNewRecord }),
			"new pool: first tokens in 9 s", "frozen", Broken,
		},
		"freeze, and a pod without a share": {
			with(pool(full, Pod{ID: "b", Waiting: 20, Reason: limit.ReasonFrozen, Hold: sharing.Hold{Callers: 20}}), func(s *State) {
				s.Frozen, s.FrozenBy = 9*time.Second, driver.FreezeLostRow
			}),
			"no share grows for 9 s, for the store has lost what it promised to a pod; 29 callers wait", "frozen", Broken,
		},
		"freeze, and a limit that is used": {
			with(pool(full, full2), func(s *State) { s.Frozen, s.FrozenBy = 9*time.Second, driver.FreezeLostRow }),
			"the limit of 400/s is used in full; 14 callers wait", "limit", Held,
		},
		"freeze that holds nobody": {
			with(pool(idle), func(s *State) { s.Frozen, s.FrozenBy = 9*time.Second, driver.FreezeLostRow }), "nothing holds callers back", "none", Usual,
		},
		"store: password": {
			failed(State{Now: now}, "consensus: loading pool \"p\": WRONGPASS invalid username-password pair or user is disabled."),
			"the store rejects the password (NUMATHROTTLE_STORE_PASSWORD)", "store_lost", Broken,
		},
		"store: said already": {
			failed(State{Now: now}, "numathrottle: the store rejects the password (NUMATHROTTLE_STORE_PASSWORD)"),
			"the store rejects the password (NUMATHROTTLE_STORE_PASSWORD)", "store_lost", Broken,
		},
		"store: said, with the error": {
			failed(State{Now: now}, "the store rejects the password (NUMATHROTTLE_STORE_PASSWORD): WRONGPASS invalid username-password pair"),
			"the store rejects the password (NUMATHROTTLE_STORE_PASSWORD)", "store_lost", Broken,
		},
		"store: refused, and said": {
			failed(State{Now: now}, "nothing listens at h:6379: start the store there, or correct NUMATHROTTLE_STORE"),
			"the store cannot be reached: nothing listens at h:6379: start the store there, or correct NUMATHROTTLE_STORE", "store_lost", Broken,
		},
		"store: a remedy": {
			with(failed(State{Now: now}, "h does not talk TLS: EOF"), func(s *State) { s.Remedy = "h does not talk TLS: set NUMATHROTTLE_STORE to redis://" }),
			"h does not talk TLS: set NUMATHROTTLE_STORE to redis://", "store_lost", Broken,
		},
		"store: refused": {
			failed(State{Now: now}, "dial tcp 10.0.0.1:6379: connect: connection refused"),
			"the store cannot be reached: dial tcp 10.0.0.1:6379: connect: connection refused (NUMATHROTTLE_STORE)", "store_lost", Broken,
		},
		"store lost, stop": {
			self(failed(pool(full), "context deadline exceeded"), Self{Reason: limit.ReasonStoreLost}),
			"the store does not answer in time (NUMATHROTTLE_STORE): this pod grants nothing until it answers", "store_lost", Broken,
		},
		"store lost, degrade": {
			self(failed(pool(full), "NOAUTH Authentication required."), Self{Degraded: true, Share: .25}),
			"the store asks for a password (NUMATHROTTLE_STORE_PASSWORD): this pod goes on with its share of 25 % until it answers, for an hour at most",
			"store_lost", Broken,
		},
		"store that has never answered": {
			self(failed(pool(), "WRONGPASS invalid username-password pair"), Self{Reason: limit.ReasonNoShare}),
			"the store rejects the password (NUMATHROTTLE_STORE_PASSWORD): this pod grants nothing until it answers", "store_lost", Broken,
		},
		"store failed once": {self(failed(pool(idle), "EOF"), Self{Share: .25}), "nothing holds callers back", "none", Usual},
		"replaced": {
			self(pool(full), Self{Reason: limit.ReasonReplaced}),
			"another process has joined the pool as pod-0, and this one gets nothing: give each process an ID of its own (NUMATHROTTLE_ID)", "replaced", Broken,
		},
		"unreadable": {
			self(pool(full), Self{Reason: limit.ReasonUnreadable}),
			"this pod cannot read the override or the pauses of the pool, which a later release wrote: update it, or numathrottle limit clear --pool p",
			"unreadable", Broken,
		},
		"unreadable pauses": {
			self(with(pool(full), func(s *State) { s.Unreadable = []string{"pause"} }), Self{Reason: limit.ReasonUnreadable}),
			"the document of pauses cannot be read, for a later release wrote it or it is damaged; pods that cannot read it grant nothing: " +
				"update them, or numathrottle resume --pool p", "unreadable", Broken,
		},
		"unreadable pauses, for a later pod": {
			with(only(limit.ReasonUnreadable, "", two), func(s *State) { s.Pauses = []limit.Paused{{Tag: "acme"}} }),
			"pod-0 cannot read the document of pauses, which a later release wrote: update it, or numathrottle resume --pool p; 2 callers wait",
			"unreadable", Broken,
		},
		"unreadable quotas": {
			with(pool(idle), func(s *State) { s.Unreadable = []string{"quota"} }),
			"the document of changed quotas cannot be read, for a later release wrote it or it is damaged; pods that cannot read it keep the quotas " +
				"they know: update them, or numathrottle quota clear --all --pool p", "unreadable", Held,
		},
		"closed": {
			self(State{Now: now, Limit: "400/s"}, Self{Reason: limit.ReasonClosed}),
			"the limiter is closed: it grants nothing any more", "closed", Broken,
		},
		"a limit of one process": {
			State{Now: now, Limit: "400/s", PerSecond: 400, Self: &Self{}, Pods: []Pod{stand("this process", limit.ReasonLimit, "", 2, two)}},
			"the limit of 400/s is used in full; 2 callers wait", "limit", Held,
		},
	} {
		a := Explain(c.state)
		require.Equal(t, Answer{c.cause, c.level, c.want}, a, name)
		require.NotContains(t, a.Sentence, "\n", name)
		require.Equal(t, a, Explain(c.state), "the same state, the same answer")
	}
}

// Every reason that a pod may tell has a sentence of its own, with and without a tag, and a cause that is bounded.
func TestExplainKnowsAllReasons(t *testing.T) {
	seen := map[string]string{}
	for _, r := range limit.Reasons() {
		s := pool(stand("pod-0", r, "", 2, sharing.Hold{Callers: 2}))
		if r == limit.ReasonClosed {
			s.Self = &Self{Reason: r}
		}
		a := Explain(s)
		require.NotContains(t, seen, a.Sentence)
		seen[a.Sentence] = a.Cause
		require.True(t, limit.Reason(a.Cause).Listed(), a.Cause)
		if r != limit.ReasonOther {
			require.Equal(t, string(r), a.Cause)
			require.NotContains(t, a.Sentence, "("+string(r)+")", "%s has words of its own", r)
		}
	}
}
