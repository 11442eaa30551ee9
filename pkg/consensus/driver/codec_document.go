package driver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
)

// The shortest form of a document: a name and a body of one byte each.
const minDocumentBytes = 5

// appendEpoch writes when the pool began, relative to the clock, so that it is short.
func (r *Record) appendEpoch(b []byte) []byte {
	b = binary.AppendVarint(b, r.Clock-r.Epoch)
	b = binary.AppendUvarint(b, uint64(r.Silence.Microseconds()))
	return append(b, boolByte(r.EpochUnstamped))
}

func (d *decoder) epoch(r *Record) {
	r.Epoch = r.Clock - d.varint("the beginning")
	slept := d.uvarint("the silence before the beginning")
	if slept > uint64(maxSilence.Microseconds()) {
		d.failf("the silence before the beginning is %dus, allowed: at most %d", slept, maxSilence.Microseconds())
		return
	}
	r.Silence = time.Duration(slept) * time.Microsecond
	r.EpochUnstamped = d.bool("the flag of the beginning")
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

func (r *Record) appendDocuments(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.Documents)))
	for i := range r.Documents {
		doc := &r.Documents[i]
		b = appendString(b, doc.Name)
		b = binary.AppendUvarint(b, uint64(doc.Version))
		b = binary.AppendUvarint(b, uint64(len(doc.Body)))
		b = append(b, doc.Body...)
	}
	return b
}

func (d *decoder) documents(r *Record) {
	n := d.count("documents", minDocumentBytes)
	if n > MaxDocuments {
		d.failf("%d documents, allowed: at most %d", n, MaxDocuments)
		return
	}
	if n > 0 {
		r.Documents = make([]Document, 0, n)
	}
	for i := 0; i < n && d.err == nil; i++ {
		doc := Document{Name: d.string("the name of a document", maxDocumentName)}
		doc.Version = Version(d.uvarint("the version of a document"))
		doc.Body = d.bytes("the body of a document", MaxDocumentBytes)
		r.Documents = append(r.Documents, doc)
	}
}

// bytes reads some bytes with their number before them, as a copy.
func (d *decoder) bytes(field string, most int) []byte {
	n := d.uvarint("the length of " + field)
	if n > uint64(most) {
		d.failf("%s has %d bytes, allowed: at most %d", field, n, most)
		return nil
	}
	return bytes.Clone(d.take(int(n)))
}
