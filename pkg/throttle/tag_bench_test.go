package throttle

import "testing"

func BenchmarkTagTryAcquire(b *testing.B) {
	for name, tags := range map[string][]string{"total": {"a"}, "free": {"b"}, "other": {""}, "two": {"a", "b"}, "adaptive": {"a"}} {
		b.Run(name, func(b *testing.B) {
			l := Limit{Max: 1_000_000_000, Burst: 1_000_000_000, Adaptive: name == "adaptive"}
			th := quotaed(b, l, tagsOf(map[string]Quota{"a": {Total: 900_000_000, Burst: 900_000_000}, "b": {}}))
			th.bucket.Deposit(th.bucket.Units(900_000_000))
			th.ForTags(tags...)
			b.ReportAllocs()
			refused := 0
			for b.Loop() {
				l := th.ForTag(tags[0])
				if len(tags) > 1 {
					l = th.ForTags(tags...)
				}
				if _, ok := l.TryAcquire(1); !ok {
					refused++
				}
			}
			if refused > 100 {
				b.Fatal("no tokens", refused)
			}
		})
	}
}
