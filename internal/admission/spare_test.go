package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASpareSliceIsEmptyAndKeepsNothingAlive(t *testing.T) {
	var s Spare[*int]
	require.Empty(t, s.Take())
	used := []*int{new(int), new(int), new(int)}
	s.Give(used[:2])
	require.Equal(t, []*int{nil, nil, nil}, used, "what it held may be collected")
	for range 100 { // the pool may have lost it, and does now and then with the race detector
		again := s.Take()
		require.Empty(t, again)
		s.Give(append(again, new(int)))
	}
}

func TestASpareSliceIsTakenOnce(t *testing.T) {
	var s Spare[int]
	for range 100 {
		s.Give(make([]int, 5))
		one, other := append(s.Take(), 1), append(s.Take(), 2)
		require.Equal(t, []int{1}, one)
		require.Equal(t, []int{2}, other)
	}
}
