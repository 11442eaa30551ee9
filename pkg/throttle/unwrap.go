package throttle

// maxWraps bounds how many limiters are looked through, so that one that shows itself stops nobody.
const maxWraps = 100

// unwrapTo returns l as a T, or the first T among what l shows by a method `Unwrap() Limiter`, and what that shows. It is
// for what a limiter is asked and told beside draws: ExternalWait, Refuse, Adaptive, Throttled, RetryAfter, and whether it is closed. A draw is
// never looked through, nor is Unlimited: what is around a limiter may hold callers back by itself.
func unwrapTo[T any](l Limiter) (found T, ok bool) {
	for range maxWraps {
		if found, ok = l.(T); ok {
			return found, true
		}
		u, shows := l.(interface{ Unwrap() Limiter })
		if !shows {
			break
		}
		l = u.Unwrap()
	}
	return found, false
}
