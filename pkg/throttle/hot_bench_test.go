package throttle

import (
	"sync/atomic"
	"testing"
	"time"
)

// stocked returns a Throttle with tokens in tag bucket that are drawn faster than
// they are earned, so that the bucket does not overflow while it is measured.
func stocked(b *testing.B) *Throttle {
	b.Helper()
	t, err := New(Limit{Max: 20_000_000, Burst: 1_000_000_000})
	if err != nil {
		b.Fatal(err)
	}
	t.bucket.Deposit(t.bucket.Units(900_000_000))
	return t
}

func BenchmarkTryAcquire(b *testing.B) {
	base := time.Now()
	b.Run("clock+cas", func(b *testing.B) {
		var c atomic.Int64
		for b.Loop() {
			n := int64(time.Since(base))
			c.CompareAndSwap(c.Load(), n)
		}
	})
	b.Run("tokens", func(b *testing.B) {
		t := stocked(b)
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := t.TryAcquire(1); !ok {
				b.Fatal("no tokens")
			}
		}
	})
	b.Run("full", func(b *testing.B) {
		t, _ := New(Limit{Max: 1_000_000_000, Burst: 1_000_000})
		time.Sleep(10 * time.Millisecond)
		for b.Loop() {
			if _, ok := t.TryAcquire(1); !ok {
				b.Fatal("no tokens")
			}
		}
	})
	b.Run("none", func(b *testing.B) {
		t, _ := New(Limit{Max: 1, Per: time.Hour})
		for b.Loop() {
			if _, ok := t.TryAcquire(1); ok {
				b.Fatal("a token")
			}
		}
	})
	b.Run("tokens-parallel", func(b *testing.B) {
		t := stocked(b)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, ok := t.TryAcquire(1); !ok {
					b.Error("no tokens")
				}
			}
		})
	})
}
