package main

import (
	"fmt"
	"html"
	"strings"
	"time"
)

// Colours of pods and ways that everyone can distinguish, also in print.
var colours = []string{"#0072b2", "#e69f00", "#009e73"}

const (
	ink   = "#222222"
	faint = "#999999"
	alarm = "#d55e00"
)

// A canvas collects the elements of a picture.
type canvas struct {
	b             strings.Builder
	width, height int
}

// newCanvas begins a picture. title and what describe it for readers who cannot see it.
func newCanvas(width, height int, title, what string) *canvas {
	c := &canvas{width: width, height: height}
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="sans-serif" font-size="13">`+"\n", width, height)
	fmt.Fprintf(&c.b, "<title>%s</title>\n<desc>%s</desc>\n", html.EscapeString(title), html.EscapeString(what))
	fmt.Fprintf(&c.b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	c.text(16, 26, ink, `font-size="16" font-weight="bold"`, title)
	return c
}

// String ends the picture.
func (c *canvas) String() string { return c.b.String() + "</svg>\n" }

// n writes a coordinate: a tenth of a unit is enough, and the same on every machine.
func n(x float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0") }

func (c *canvas) text(x, y float64, colour, more, text string) {
	fmt.Fprintf(&c.b, `<text x="%s" y="%s" fill="%s" %s>%s</text>`+"\n", n(x), n(y), colour, more, html.EscapeString(text))
}

func (c *canvas) line(x1, y1, x2, y2 float64, colour, more string) {
	fmt.Fprintf(&c.b, `<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s" %s/>`+"\n", n(x1), n(y1), n(x2), n(y2), colour, more)
}

func (c *canvas) rect(x, y, w, h float64, colour, more string) {
	fmt.Fprintf(&c.b, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s" %s/>`+"\n", n(x), n(y), n(w), n(h), colour, more)
}

// A panel is a part of a picture with axes: time to the right, a number upwards.
type panel struct {
	c                        *canvas
	left, top, width, height float64
	from, to                 time.Duration
	most                     float64
}

func (p *panel) x(at time.Duration) float64 {
	return p.left + p.width*float64(at-p.from)/float64(p.to-p.from)
}

func (p *panel) y(v float64) float64 { return p.top + p.height*(1-min(v, p.most)/p.most) }

// axes draws the frame, with a mark upwards for each of the values and one to the right each step.
func (p *panel) axes(unit string, values []float64, step time.Duration) {
	for _, v := range values {
		p.c.line(p.left-4, p.y(v), p.left, p.y(v), faint, "")
		p.c.text(p.left-8, p.y(v)+4, ink, `text-anchor="end"`, n(v)+unit)
	}
	for at := p.from; at <= p.to; at += step {
		p.c.line(p.x(at), p.top+p.height, p.x(at), p.top+p.height+4, faint, "")
		label := strings.TrimSuffix(fmt.Sprintf("%.1f", at.Seconds()), ".0") + " s"
		p.c.text(p.x(at), p.top+p.height+18, ink, `text-anchor="middle"`, label)
	}
	p.c.line(p.left, p.top, p.left, p.top+p.height, faint, "")
	p.c.line(p.left, p.top+p.height, p.left+p.width, p.top+p.height, faint, "")
}

// level draws the limit.
func (p *panel) level(v float64) {
	p.c.line(p.left, p.y(v), p.left+p.width, p.y(v), alarm, `stroke-width="1.5" stroke-dasharray="6 3"`)
}

// mark draws the events that have a text. With names it writes that above the panel.
func (p *panel) mark(events []event, names bool) {
	for _, e := range events {
		if e.text == "" || e.at < p.from || e.at > p.to {
			continue
		}
		p.c.line(p.x(e.at), p.top, p.x(e.at), p.top+p.height, ink, `stroke-dasharray="2 3"`)
		if names {
			p.c.text(p.x(e.at), p.top-6, ink, `font-size="12"`, e.text)
		}
	}
}

// bars draws a bar for each step of the panel's time, as high as f says.
func (p *panel) bars(step time.Duration, colour string, f func(from, to time.Duration) float64) {
	for at := p.from; at < p.to; at += step {
		if v := f(at, at+step); v > 0 {
			p.c.rect(p.x(at)+0.5, p.y(v), p.x(at+step)-p.x(at)-1, p.top+p.height-p.y(v), colour, "")
			if v > p.most {
				p.c.text(p.x(at), p.top+10, alarm, `font-size="11"`, n(v))
			}
		}
	}
}
