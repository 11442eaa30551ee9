package throttle

import "testing"

// BenchmarkInFlightOfTag compares a call in flight without a tag, and one of a tag with a quota.
func BenchmarkInFlightOfTag(b *testing.B) {
	plain, err := NewInFlight(1000)
	if err != nil {
		b.Fatal(err)
	}
	with, err := NewInFlight(1000, WithQuotas(Quotas{
		Tags: map[string]Quota{"a": {Reserved: 10, Total: 500}}, Match: []QuotaPattern{{Tag: "team-*", Quota: Quota{Total: 50}}},
	}))
	if err != nil {
		b.Fatal(err)
	}
	for name, l := range map[string]func() Limiter{
		"plain": func() Limiter { return plain }, "no tag": func() Limiter { return with },
		"tag": func() Limiter { return with.ForTag("a") }, "pattern": func() Limiter { return with.ForTag("team-7") },
		"two levels": func() Limiter { return with.ForTags("a", "team-7") },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p, ok := l().TryAcquire(1)
				if !ok {
					b.Fatal("refused")
				}
				p.Settle(1)
			}
		})
	}
}
