// Package operate is for operators of a pool: it shows and changes the limit, pauses, quotas, spending and debt of a pool without joining
// it. The command numathrottle and its console are built on it.
//
//	store, err := numathrottle.OpenStore(ctx, config)
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	pool := operate.Pool{Store: store, Name: "orders/llm"}
//	_, err = pool.SetLimit(ctx, operate.Override{Max: 300, Until: time.Now().Add(time.Hour), Reason: "a sale", By: "ann"})
//	if err != nil {
//		return err
//	}
//	return pool.Pause(ctx, throttle.Paused{Tag: "acme", Reason: "their request"})
//
// # Which method to call
//
//   - See what happens: [Pool.Overview], and [Tags] for its tags.
//   - Lower or raise the limit: [Pool.SetLimit], and [Pool.ClearLimit] for the configured one.
//   - Stop everything, or one tag: [Pool.Pause] and [Pool.Resume].
//   - Change what a tag may use: [Pool.Quota], [Pool.SetQuota] or [Pool.SetQuotaFor], and [Pool.ClearQuota] for the configured quota.
//   - End what a changed settings file has set: [Pool.ClearFile].
//   - See and correct the spending of budgets: [Pool.Spent] and [Pool.SetSpent].
//   - Cancel what calls owe: [Pool.ForgiveDebt].
//   - Find pools: [Pools].
//
// # Effects and errors
//
// A change is stored in the pool's record. Each pod applies it at its next sync, within about a second. A pause arrives sooner on
// stores that push. The record does not show which pods have applied a change.
//
// All functions are safe for concurrent use. Functions with a context block until the store has answered; the context bounds them.
// They return errors of the store, and one that wraps [driver.ErrNoPool] for a pool without a record: no pod has been in it. Changes also
// return [*driver.RequestError] for a value out of bounds or refused by the pool; for a pause it is a [*throttle.PauseError]. After five lost
// races against other writers they return a [*driver.ConflictError]: call again then.
package operate
