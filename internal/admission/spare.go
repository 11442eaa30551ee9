package admission

import "sync"

// A Spare keeps the memory of slices of batches that are over for the next ones, until the garbage collector
// comes for it. Its methods may be called from any number of goroutines at once. The zero Spare has none.
type Spare[T any] struct{ slices sync.Pool }

// Take returns an empty slice, with memory if there is some.
func (s *Spare[T]) Take() []T {
	if kept, ok := s.slices.Get().(*[]T); ok {
		return *kept
	}
	return nil
}

// Give keeps the memory of a slice that nobody uses any more, and forgets what was in it.
func (s *Spare[T]) Give(used []T) {
	clear(used[:cap(used)])
	used = used[:0]
	s.slices.Put(&used)
}
