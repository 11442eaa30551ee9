package admission

import "sync"

// A Spare keeps the memory of finished batches' slices for later ones, until the garbage collector takes it. Its methods may be called from
// any number of goroutines at once. The zero Spare is empty.
type Spare[T any] struct{ slices sync.Pool }

// Take returns an empty slice, with memory if the Spare has some.
func (s *Spare[T]) Take() []T {
	if kept, ok := s.slices.Get().(*[]T); ok {
		return *kept
	}
	return nil
}

// Give keeps the memory of a slice that is not used any more, and clears it.
func (s *Spare[T]) Give(used []T) {
	clear(used[:cap(used)])
	used = used[:0]
	s.slices.Put(&used)
}
