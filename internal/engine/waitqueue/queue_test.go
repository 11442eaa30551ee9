package waitqueue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

func order(q *Queue[int]) (ages []uint64) {
	for w := range q.All() {
		ages = append(ages, w.Age)
	}
	return ages
}

func TestQueueKeepsTheOrderOfArrival(t *testing.T) {
	arrivals.Store(10)
	var q Queue[int]
	require.True(t, q.Empty())
	older, newer := &Waiter[int]{Age: 1, Least: 3}, &Waiter[int]{Age: 2, Least: 5}
	last := &Waiter[int]{Least: 7}
	q.Insert(newer)
	q.Collected = 4
	require.True(t, q.IsNext(older), "who came before stands before, wherever it waited")
	require.Zero(t, q.Before(older))
	q.Insert(older)
	q.Push(last)
	require.Positive(t, last.Age)
	last.Age = Latest
	require.Equal(t, []uint64{1, 2, Latest}, order(&q))
	require.Equal(t, []int{3, 15}, []int{q.Len, q.Tokens})
	require.Equal(t, 8, q.Before(last))
	require.Equal(t, int64(4), q.Remove(older), "what was collected passes on to who takes the place")
	require.Zero(t, q.Remove(newer))
	require.False(t, newer.Queued())
	require.Equal(t, []uint64{Latest}, order(&q))
	q.Remove(last)
	require.True(t, q.Empty())
	require.Zero(t, q.Len+q.Tokens)
}

func TestWaiterMissesItsDeadline(t *testing.T) {
	w := &Waiter[int]{Deadline: int64(5 * time.Second)}
	require.False(t, w.Misses(int64(time.Second), 4*time.Second))
	require.True(t, w.Misses(int64(time.Second), 4*time.Second+1))
	w.Deadline = sharing.Never
	require.False(t, w.Misses(0, sharing.Never))
}

// A caller that waits without the Go scheduler is woken after its channel was closed.
func TestWaiterIsWoken(t *testing.T) {
	var q Queue[int]
	for _, end := range []func(w *Waiter[int]){
		func(w *Waiter[int]) { w.Serve(3) },
		func(w *Waiter[int]) { w.Fail(sharing.ErrClosed) },
		func(w *Waiter[int]) { w.Dismiss() },
	} {
		w, woken := &Waiter[int]{Ready: make(chan struct{})}, false
		q.Push(w)
		w.Woken = func() {
			<-w.Ready
			woken = true
		}
		q.Remove(w)
		end(w)
		require.True(t, woken)
		w.Ready, w.Woken = make(chan struct{}), nil
		require.NotPanics(t, func() { end(w) })
	}
}
