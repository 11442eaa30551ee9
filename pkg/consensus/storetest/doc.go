// Package storetest is the conformance suite for implementations of [driver.Store]. Like package driver it is a seam for third-party stores,
// without a promise of stability: a release may add cases, and change [Harness].
//
// A store's own test file is a short harness:
//
//	func TestConformance(t *testing.T) {
//		server := startServer(t)
//		storetest.Run(t, storetest.Harness{
//			Longest: 500 * time.Millisecond,
//			New: func(t testing.TB) driver.Store {
//				return mystore.New(server.Dial(t), mystore.WithLongestLease(500*time.Millisecond))
//			},
//		})
//	}
//
// # Which fields to set
//
// Only [Harness.New] is required. [Harness.Memory], [Harness.Deferred] and [Harness.KnowsNew] say what kind of store it is. With
// [Harness.Wipe], [Harness.Restart] and [Harness.Snapshot] the suite also tests what a store forgets: set those that your server allows.
// [Harness.Longest] keeps the suite short.
//
// A store that calls [driver.Record] needs no more. A store that does the step in a language of its own should also be compared with a
// Record, in random steps at times that the test sets. TestScriptsDoWhatRecordDoes of redisstore does that.
//
// # The suite
//
// The cases take the rules of the package documentation of consensus one by one. They need no control of the store's clock, and wait for real
// time only where a rule is about time. They ask for leases of tenths of a second, which consensus.Join does not allow but every store
// accepts, so that the suite runs in seconds. It may run against a server that holds other pools: the names of its pools are drawn at random.
package storetest
