package throttle

// maxWraps bounds how many limiters are looked through, so that a limiter that unwraps to itself stops nobody.
const maxWraps = 100

// unwrapTo returns l as a T, or the first T found through methods `Unwrap() Limiter`. It serves everything beside draws: ExternalWait,
// Refuse, Adaptive, Throttled, RetryAfter, and whether a limiter is closed. Draws and Unlimited never look through: a wrapper may hold
// callers back by itself.
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
