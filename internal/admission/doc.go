// Package admission draws the tokens of one message for the wrappers, and reports when they do not come.
//
// A wrapper makes one Admitter when it is built, and calls Admit for each message. It acts on the result:
//
//   - A permit: the message is handled. The permit is cancelled if the message was not handled after all.
//   - A *Denied: the tokens do not come within MaxWait, or never. The wrapper answers as the user chose; Denied.RetryAfter is the delay of
//     a nack. If the user chose to wait, a message that can never be granted fails alone: with a nack, or in a sink with a failure.
//   - Any other error: the message cannot be answered. The wrapper hands the error to Abandoner.Abandon, which never returns.
//
// A Batch is an Admitter for messages that are answered together: MaxWait bounds their single waits, and a budget their total wait.
//
// Settings and Action hold the options of every wrapper. A Wrapper is made of them: an Admitter, an Abandoner and the answers to denied
// messages. The options themselves stand in the wrappers' packages, with their documentation.
//
// PayloadCost, HeaderCost, HeaderTag and KeyTag are the basis of the wrappers' helpers for costs and tags. The kinds of message of
// numaflow-go have types of their own, and these take their common parts.
package admission
