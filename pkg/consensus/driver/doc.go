// Package driver is what the author of a store needs: the interface Store, the
// messages that a processor and a store exchange, and the store's step as a pure
// function on a Record.
//
// Users of a pool need nothing from here but a finished store, such as those in
// packages memstore, redisstore and natsstore. The protocol as a whole is described
// in package consensus.
//
// # How to write a store
//
// A store keeps one Record per pool and changes it in atomic steps. There are two ways:
//
//   - Keep the record as bytes (Record.AppendBinary, ParseRecord) and write it with a lock
//     or a compare-and-set. Each step reads the record, calls Record.Sync, Record.Leave,
//     Record.Reserve or Record.Save, and writes the record back. Package memstore is the
//     shortest example, package natsstore the one with a compare-and-set.
//   - Do the same steps in the language of the server, and compare the results with a Record
//     in a test. Package redisstore does so in Lua.
//
// What a store knows of the moment of a step goes into At: its clock, the identity of
// the server, and for how long it is known to have forgotten nothing. Package storetest
// has the conformance suite, which every store passes.
//
// Each method of a store first validates its request. The errors of the Validate methods
// name the field, its value and what is allowed.
package driver
