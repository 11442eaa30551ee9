// Package autoscale tests autoscalers against throttled vertices: how many pods run during a backlog, and how much of the limit they use.
//
// The limiters, the pool and the wrapper are the real ones, and run in a testing/synctest bubble. The buffer, the platform's counters and
// the scalers are models. The model of Numaflow's scaler has the rules of pkg/reconciler/vertex/scaling and of the daemon's rates in
// v1.8.3, without back pressure from later vertices. docs/autoscaling.md describes the settings that are tested here.
package autoscale
