package httpthrottle

// Tags returns how many tags a Pause remembers.
func Tags(p *Pause) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.tags)
}

// SharedBase is sharedBase.
var SharedBase = sharedBase
