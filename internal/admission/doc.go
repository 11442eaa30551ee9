// Package admission draws the tokens of one message for the wrappers, and says
// when they do not come.
//
// A wrapper makes one Gate when it is built, and calls Admit for each message. Of
// what comes back it makes the following:
//
//   - A permit: the message is handled. The permit is cancelled when the message
//     was not handled after all.
//   - A *Denied: the tokens do not come within MaxWait, or never. The wrapper answers as the
//     user chose; Denied.RetryAfter is the delay of a nack. Where the user chose to wait, what can never be
//     granted fails alone: a nack, or in a sink a failure.
//   - Any other error: the message cannot be answered. The wrapper hands the error
//     to Abandoner.Abandon, which never returns.
//
// A Batch is a Gate for messages that are answered together: MaxWait bounds what they
// wait one by one, and a budget what they wait together.
//
// Settings and Action are what the options of every wrapper say. A Wrapper is made of them: a Gate, an Abandoner and the answers to
// messages that were denied. The options themselves stand in the wrappers' packages, with their documentation.
//
// PayloadCost, HeaderCost, HeaderTag and KeyTag are what the wrappers' helpers for
// costs and tags are made of; numaflow-go's kinds of message have types of their
// own, and these take the parts that all have.
package admission
