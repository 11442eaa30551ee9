package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func someResults() []result {
	return []result{{
		section: section{key: "some", title: "Some", shows: "What it shows."},
		tables: []table{
			{head: []string{"store", "ns"}, rows: []row{plain("memory", "1"), judged(true, "at most 2", "Redis", "2")}},
			{caption: "More.", head: []string{"store", "ns"}, rows: []row{judged(false, "at most 2", "NATS", "3")}},
			{head: []string{"only", "shown"}, rows: []row{plain("a", "b")}},
		},
	}}
}

func TestMarkdown(t *testing.T) {
	m := newMachine()
	m.end(map[string]string{"redis-server": "7.0.15"})
	var doc bytes.Buffer
	writeMarkdown(&doc, m, someResults())
	text := doc.String()
	require.Contains(t, text, "| redis-server | 7.0.15 |\n")
	require.Contains(t, text, "**1 of 2 targets kept.**\n- missed: Some: NATS, 3 (target at most 2)\n")
	require.Contains(t, text, "## Some\n\nWhat it shows.\n\n| store | ns | target |  |\n| --- | ---: | ---: | ---: |\n"+
		"| memory | 1 |  |  |\n| Redis | 2 | at most 2 | kept |\n\nMore.\n\n")
	require.Contains(t, text, "| NATS | 3 | at most 2 | **missed** |\n")
	require.Contains(t, text, "| only | shown |\n| --- | --- |\n| a | b |\n", "no column for targets where there are none")
	for line := range strings.Lines(text) {
		require.Equal(t, strings.TrimRight(line, " \n"), strings.TrimSuffix(line, "\n"), "no space at the end of a line")
	}
}

func TestText(t *testing.T) {
	var out bytes.Buffer
	writeText(&out, someResults())
	require.Contains(t, out.String(), "1 of 2 targets kept\nmissed: Some: NATS, 3 (target at most 2)\n")
	require.NotContains(t, out.String(), "**")
}

func TestCells(t *testing.T) {
	require.Equal(t, "999", count(999))
	require.Equal(t, "1,000", count(1000))
	require.Equal(t, "12,345,678", count(12_345_678))
	require.Equal(t, "1.500 ms", milliseconds(1500*time.Microsecond))
	require.Equal(t, "4.90 %", percent(0.049))
}

func TestChoose(t *testing.T) {
	all, err := choose("")
	require.NoError(t, err)
	require.Len(t, all, len(sections))

	some, err := choose("sync,hot")
	require.NoError(t, err)
	require.Len(t, some, 2)
	require.Equal(t, "hot", some[0].key, "in the order of the document")

	_, err = choose("hot,cold")
	require.ErrorContains(t, err, `-only names "cold", allowed: hot, contention`)
}

// An operation that is denied against expectation measures something else.
func TestOperationsCheckThemselves(t *testing.T) {
	ops, err := operations()
	require.NoError(t, err)
	for _, op := range ops {
		_, err := (&race{goroutines: 2}).run([]turn{{op, 10_000}})
		require.NoError(t, err)
		op.denies = !op.denies
		if op.name != ops[opClock].name && op.name != ops[opClockAndSwap].name {
			_, err = (&race{goroutines: 1}).run([]turn{{op, 10_000}})
			require.ErrorContains(t, err, op.name)
		}
	}
}

func TestRunPrintsASectionAndItsTargets(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-quick", "-only", "hot"}, &out, io.Discard))
	require.Contains(t, out.String(), "TryAcquire, tokens in stock")
	require.Contains(t, out.String(), "of 4 targets")
}
