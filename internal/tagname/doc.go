// Package tagname names tags: it has the names that can have a quota, the key of a name in stores, and the name in errors and logs.
package tagname
