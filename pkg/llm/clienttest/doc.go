// Package clienttest shows that package llm works under client libraries as they are. It is a module of its own, so that no user of
// numathrottle resolves them.
package clienttest
