package storetest

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// documentNames are one more than a pool may have.
var documentNames = []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}

// request is a player's next request: with reports on the documents that it knows, and
// at times with changes of them.
func (s *sequence) request(pl *player) driver.Request {
	req := pl.request(s.report(pl))
	for _, i := range s.rng.Perm(len(documentNames))[:s.rng.IntN(driver.MaxDocuments+1)] {
		name := documentNames[i]
		d := driver.DocumentReport{Name: name, Version: pl.docs[name].Version}
		switch s.rng.IntN(4) {
		case 0: // a change of what it knows
			d.Base, d.Version, d.Body = d.Version, s.version(d.Version), []byte(s.body(40)+"!")
		case 1: // what it knows, in case the store has lost it
			d.Base, d.Body = d.Version, pl.docs[name].Body
		}
		req.Documents = append(req.Documents, d)
	}
	// Now and then the spacing is by one of them.
	if n := len(req.Documents); n > 0 && s.spacing > 0 && s.rng.IntN(4) == 0 {
		if d := req.Documents[s.rng.IntN(n)]; d.Version > 0 {
			req.SpacingBy, req.Spacing = d.Name, s.spacing+time.Duration(s.rng.IntN(3))*time.Millisecond
		}
	}
	req.Draws = s.draws()
	return req
}

// version is the next one, and mostly not the only next one.
func (s *sequence) version(base driver.Version) driver.Version {
	if s.rng.IntN(3) == 0 {
		return base + 1
	}
	return driver.NextVersion(base, uint16(s.rng.IntN(4)))
}

// body is up to most bytes of any kind but NUL.
func (s *sequence) body(most int) string {
	b := make([]byte, s.rng.IntN(most+1))
	for i := range b {
		b[i] = byte(1 + s.rng.IntN(255))
	}
	return string(b)
}

// load lets a player load the documents of an answer that it takes: the newer one stays.
func (s *sequence) load(pl *player, req *driver.Request, ans *driver.Answer) {
	if ans.Status != driver.Granted {
		return
	}
	for _, d := range ans.Documents {
		if d.Version > pl.docs[d.Name].Version || s.rng.IntN(4) == 0 {
			pl.docs[d.Name] = d
		}
	}
	for _, r := range req.Documents {
		told := false
		for _, d := range ans.Documents {
			told = told || d.Name == r.Name
		}
		if !told && len(r.Body) > 0 {
			pl.docs[r.Name] = driver.Document{Name: r.Name, Version: r.Version, Body: r.Body}
		}
	}
}

// operator saves a document, made from the version on record or another one.
func (s *sequence) operator(pl *player) {
	s.Helper()
	name := documentNames[s.rng.IntN(len(documentNames))]
	base := pl.docs[name].Version
	for _, d := range s.ref.rec.Documents {
		if d.Name == name && s.rng.IntN(3) > 0 {
			base = d.Version
		}
	}
	d := change(name, base, s.version(base), s.body(40)+"?")
	s.attend(pl)
	current, err := s.save(d)
	s.tracef("an operator saves %s %d of %d %.20q: %d, %v", name, d.Version, base, d.Body, current, err)
	s.follow(nil, 0, 0, save(d, current, err))
}
