package throttle

// asLevels stands behind the names of two levels where limiters of several tags are remembered. No name has a control character.
const asLevels = "\x00"

// forLevels is hook.ForLevels.
func forLevels(l Limiter, first, second string) Limiter {
	switch t := l.(type) {
	case interface {
		forLevels(first, second string) Limiter
	}:
		return t.forLevels(first, second)
	case interface {
		ForLevels(first, second string) Limiter
	}:
		return t.ForLevels(first, second)
	case Tagger:
		return t.ForTag(first)
	}
	return l
}

func (t *Throttle) forLevels(first, second string) Limiter {
	if t.tags == nil {
		return t
	}
	return t.tags.forTags([]string{first, second}, true)
}

func (t *tagged) forLevels(first, second string) Limiter {
	return t.each(func(l Limiter) Limiter { return forLevels(l, first, second) })
}

// lead notes that g is drawn for by itself, or before others.
func (s *tagSet) lead(g *tag) {
	if !g.under.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.under.Swap(false) && s.tags[g.name] == g {
		s.add(g, *g.quota()) // with its weight, which was 0
	}
}
