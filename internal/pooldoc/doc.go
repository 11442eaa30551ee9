// Package pooldoc has the common parts of all documents of a pool: a limit's override, the position of a ramp or a backoff, pauses and
// others.
//
// A document's life has four parts:
//
//   - load: a processor has a Cache of all documents, which each answer of the store updates. Doc.Read turns the body of
//     one into a value.
//   - propose: a request brings the next version of a document (Doc.Propose). The store takes it if nobody else was first;
//     the answer has the document on record.
//   - give back: the next request restores the documents that a store lost when it was emptied or fell back to an older
//     copy (Cache.Reports). That includes documents that this release cannot read.
//   - compare and set: a program that is not a processor, or does not wait for the next request, changes a document at
//     once (Doc.Change), and retries if somebody else was first (Retry).
package pooldoc
