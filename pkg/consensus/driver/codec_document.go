package driver

import (
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// The shortest form of a document: a name and a body of one byte each.
const minDocumentBytes = 5

// epoch is when the pool began, relative to the clock, so that it is short.
func (c *coder) epoch(r *Record) {
	c.before("the beginning", r.Clock, &r.Epoch)
	slept := uint64(r.Silence.Microseconds())
	num(c, "the silence before the beginning", &slept)
	if slept > uint64(maxSilence.Microseconds()) {
		c.failf("the silence before the beginning is %dus, allowed: at most %d", slept, maxSilence.Microseconds())
	}
	c.bool("the flag of the beginning", &r.EpochUnstamped)
	if !c.writes {
		r.Silence = time.Duration(slept) * time.Microsecond
	}
}

func (r *Record) checkEpoch() error {
	if err := checkMicros("the beginning", r.Epoch); err != nil {
		return err
	}
	if r.Epoch < 0 {
		return outside("the beginning", fmt.Sprint(r.Epoch, "us"), "0 or more")
	}
	if r.Silence < 0 || r.Silence > maxSilence || r.Silence%time.Microsecond != 0 {
		return outside("the silence before the beginning", r.Silence.String(), "whole microseconds from 0 to "+maxSilence.String())
	}
	return nil
}

func (c *coder) documents(r *Record) {
	most := func(n int) {
		if n > wire.MaxDocuments {
			c.failf("%d documents, allowed: at most %d", n, wire.MaxDocuments)
		}
	}
	list(c, "documents", minDocumentBytes, most, &r.Documents, func(d *Document) {
		text(c, "the name of a document", maxDocumentName, &d.Name)
		num(c, "the version of a document", &d.Version)
		text(c, "the body of a document", wire.MaxDocumentBytes, &d.Body)
	})
}
