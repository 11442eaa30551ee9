package natsstore

import (
	"fmt"
	"testing"
)

// BenchmarkSync measures one sync in a pool of so many processors.
func BenchmarkSync(b *testing.B) {
	on := current(b)
	for _, size := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := open(b, on)
			pool := fmt.Sprint("bench-", size)
			for i := range size {
				mustSync(b, s, slow(request(pool, fmt.Sprintf("my-pipeline-my-vertex-%03d-abcde", i), 1)))
			}
			req := slow(request(pool, "my-pipeline-my-vertex-000-abcde", 1))
			next := follow(req, mustSync(b, s, req))
			b.ReportAllocs()
			for b.Loop() {
				next = follow(next, mustSync(b, s, next))
			}
		})
	}
}
