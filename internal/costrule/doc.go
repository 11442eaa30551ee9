// Package costrule reads costs and tags from requests and messages: numbers in the forms that services and clients write, and fields of
// JSON. All proxies and wrappers read them the same way.
package costrule
