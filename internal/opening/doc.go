// Package opening opens limiters from one configuration. It has the tables of the settings, too, from which the pages, the flags of the CLI
// and the schema come. Packages numathrottle and open are its public pages.
package opening
