// Package tagname names tags: which names can have a quota, the key of a name in stores, and the name that errors and logs show.
package tagname
