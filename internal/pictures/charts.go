package main

import (
	"fmt"
	"strings"
	"time"
)

// A way is one way to enforce the limit, and its calls per tick.
type way struct {
	name  string
	calls []int
}

// within counts the calls in a time range.
func within(calls []int, from, to time.Duration) int {
	sum := 0
	for _, c := range calls[from/tick : min(to/tick, time.Duration(len(calls)))] {
		sum += c
	}
	return sum
}

// worst is the largest number of calls in any second.
func worst(calls []int) int {
	most := 0
	for from := range calls {
		at := time.Duration(from) * tick
		most = max(most, within(calls, at, at+time.Second))
	}
	return most
}

// sharesPicture shows the shares of the pods and, below them, all calls.
func sharesPicture(o outcome) string {
	c := newCanvas(900, 520, "One limit of 100 a second: a pod joins, one dies and comes back, one leaves",
		"Above, the shares of three busy pods over time, which add up to the limit at most. Below, the calls of all pods in each second.")
	top := &panel{c: c, left: 70, top: 66, width: 800, height: 220, to: o.of.length, most: 100}
	for pod := range names {
		steps(o, pod, func(from, to int, below, share float64) {
			x := top.x(time.Duration(from) * tick)
			top.c.rect(x, top.y(100*(below+share)), top.x(time.Duration(to)*tick)-x, top.y(100*below)-top.y(100*(below+share)), colours[pod],
				`shape-rendering="crispEdges"`)
		})
	}
	top.axes(" %", []float64{0, 50, 100}, 10*time.Second)
	top.mark(o.of.events, true)
	for pod, at := range []time.Duration{5 * time.Second, 5 * time.Second, 17 * time.Second} {
		i := int(at / tick)
		c.text(top.x(at), top.y(100*(beneath(o, pod, i)+o.shares[pod][i]/2))+5, "#ffffff", `font-weight="bold" text-anchor="middle"`, names[pod])
	}
	const dead = 29500 * time.Millisecond
	c.text(top.x(dead), top.y(85), ink, `text-anchor="middle" font-size="11"`, "B's share is nobody's:")
	c.text(top.x(dead), top.y(78), ink, `text-anchor="middle" font-size="11"`, "it may still be in use")

	below := &panel{c: c, left: 70, top: 350, width: 800, height: 120, to: o.of.length, most: 120}
	c.text(70, 334, ink, `font-weight="bold"`, "Calls of all pods in each second")
	below.bars(time.Second, "#56b4e9", func(from, to time.Duration) float64 { return float64(within(o.calls, from, to)) })
	below.level(limitPerSecond)
	below.axes("", []float64{0, 50, 100}, 10*time.Second)
	below.mark(o.of.events, false)
	return c.String()
}

// steps calls f for each range of ticks in which a pod's share, and the sum of the shares below it, stay the same.
func steps(o outcome, pod int, f func(from, to int, below, share float64)) {
	from := 0
	for i := range o.calls {
		last := i == len(o.calls)-1
		if !last && o.shares[pod][i+1] == o.shares[pod][i] && beneath(o, pod, i+1) == beneath(o, pod, i) {
			continue
		}
		if share := o.shares[pod][i]; share > 0 {
			f(from, i+1, beneath(o, pod, i), share)
		}
		from = i + 1
	}
}

// beneath returns the sum of the shares of the pods below this one at a tick.
func beneath(o outcome, pod, i int) float64 {
	sum := 0.0
	for q := range pod {
		sum += o.shares[q][i]
	}
	return sum
}

// workPicture shows the calls in each second for each way, one above the other.
func workPicture(s scenario, ways []way) string {
	c := newCanvas(900, 610, "The same work under a limit of 100 a second, three ways",
		"Calls of all pods in each second. All three pods have work, then one alone, then all again, until that one is killed.")
	for i, w := range ways {
		p := &panel{c: c, left: 70, top: 86 + 180*float64(i), width: 800, height: 110, to: s.length, most: 120}
		c.text(70, p.top-22, ink, `font-weight="bold"`, w.name)
		p.bars(time.Second, colours[i], func(from, to time.Duration) float64 { return float64(within(w.calls, from, to)) })
		p.level(limitPerSecond)
		p.axes("", []float64{0, 50, 100}, 10*time.Second)
		p.mark(s.events, true)
	}
	return c.String()
}

// secondPicture shows the calls in each twentieth of a second, when the work has just begun.
func secondPicture(s scenario, ways []way) string {
	const from, to, step = 5500 * time.Millisecond, 8500 * time.Millisecond, 50 * time.Millisecond
	c := newCanvas(900, 530, "The first seconds of the work, closer",
		"Calls of all pods in each twentieth of a second. The built-in limit lets a whole second's calls go at the top of each second.")
	for i, w := range ways {
		p := &panel{c: c, left: 70, top: 72 + 155*float64(i), width: 800, height: 90, from: from, to: to, most: 100}
		c.text(70, p.top-8, ink, `font-weight="bold"`, fmt.Sprintf("%s: %d calls in the worst second", w.name, worst(w.calls)))
		p.bars(step, colours[i], func(from, to time.Duration) float64 { return float64(within(w.calls, from, to)) })
		p.axes("", []float64{0, 50, 100}, 500*time.Millisecond)
		p.mark(s.events, false)
	}
	return c.String()
}

// A phase is a part of the work, with a column in the table.
type phase struct {
	name     string
	from, to time.Duration
}

var phases = []phase{
	{"all have work", 10 * time.Second, 25 * time.Second},
	{"only A has work, from 3 s on", 28 * time.Second, 45 * time.Second},
	{"the first 15 s after the kill", 60 * time.Second, 75 * time.Second},
	{"later", 77 * time.Second, 100 * time.Second},
}

// table lists the figures of the pictures.
func table(s scenario, ways []way) string {
	var b strings.Builder
	b.WriteString("| calls a second |")
	for _, p := range phases {
		b.WriteString(" " + p.name + " |")
	}
	b.WriteString(" all calls | the worst second |\n|---|" + strings.Repeat("---:|", len(phases)+2) + "\n")
	for _, w := range ways {
		fmt.Fprintf(&b, "| %s |", w.name)
		for _, p := range phases {
			fmt.Fprintf(&b, " %.0f |", float64(within(w.calls, p.from, p.to))/(p.to-p.from).Seconds())
		}
		fmt.Fprintf(&b, " %d | %d |\n", within(w.calls, 0, s.length), worst(w.calls))
	}
	return b.String()
}
