// Package costrule reads costs and tags out of requests and messages: numbers as services and clients write them, and
// fields of JSON. Every surface reads them the same way.
package costrule
