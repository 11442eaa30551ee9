// Package overload slows real stores under pools of up to a thousand members. It judges the load on the stores in the meantime, and how
// soon the limit is in use again. It holds tests only, under the build tag numathrottle_faults:
//
//	go test -tags numathrottle_faults -v ./internal/overload
//
// The members are consensus.Members in this process with demand for everything and the policy Stop, so that a share is
// in use exactly while its lease lasts. A store is slowed by SIGSTOP in slices of 100 ms, so that it gets only a part
// of the processor time that it used in steady state.
//
// Members and store share this machine. If it is too small for a pool, syncs fail even before the store is slowed. Such a
// pool is measured and not judged.
//
//	NUMATHROTTLE_OVERLOAD_SIZES   numbers of members, separated by commas; 100 when unset
//	NUMATHROTTLE_OVERLOAD_STORES  stores, separated by commas: redis, nats; both when unset
package overload
