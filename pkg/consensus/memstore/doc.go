// Package memstore keeps pools in the memory of one process: for processors that share a process, and for tests. It is also the reference for
// every other store, with one [driver.Record] per pool and nothing around it but a lock.
//
//	store := memstore.New() // one for all members: two stores know nothing of each other
//	for _, id := range []string{"a", "b"} {
//		member, err := consensus.Join(ctx, store, "orders/llm", consensus.WithID(id))
//		if err != nil {
//			return err
//		}
//		defer member.Leave(ctx)
//	}
//
// It needs no options. [WithClock] sets the time in tests; testing/synctest works without it.
package memstore
