// Package lanes divides a queue by weight: start-time fair queueing (Goyal, Vin and Cheng, 1996).
//
// Each tag has a Lane. Who comes to wait gets a start, in virtual time: when the lane's tokens before it are used up, and not
// before what is being served at present. Who has the smallest start is served next. A lane with twice the
// weight goes half as far for each token, so it is served twice as often. A lane that was idle begins at the present: it has saved up
// nothing, and owes nothing.
//
// It is pure: no lock, no clock but the virtual one.
package lanes
