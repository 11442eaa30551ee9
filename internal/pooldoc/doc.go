// Package pooldoc has what all documents of a pool have in common, whatever they say: a
// limit's override, where a ramp or a backoff stands, what is paused.
//
// A document has a life of four parts:
//
//   - load: a processor has a Cache of all documents, which each answer of the store
//     brings up to date. Doc.Read turns the body of one into a value.
//   - propose: a request brings the next version of a document (Doc.Propose). The store
//     takes it if nobody else was first; the answer says what is on record.
//   - give back: a store that was emptied, or fell back to an older copy, gets what it has
//     lost with the next request (Cache.Reports). Documents that this release cannot
//     read are given back as well.
//   - compare and set: whoever is no processor, or will not wait for the next request,
//     changes a document at once (Doc.Change), anew if somebody else was first (Retry).
package pooldoc
