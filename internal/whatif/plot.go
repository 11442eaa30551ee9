package whatif

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"time"
)

// The colours can be told apart by everyone, and printed.
const (
	colourBefore = "#e69f00"
	colourAfter  = "#0072b2"
	colourLimit  = "#d55e00"
	colourFaint  = "#999999"
)

// A series is a line of a plot: a value for each part of the time.
type series struct {
	name, colour string
	values       []float64
	filled       bool
}

// A plot is one picture: values over the recording's time.
type plot struct {
	title, unit   string
	width, height float64
	start         time.Time
	length        time.Duration
	series        []series
	level         float64 // of a line across it; 0: none
	levelName     string
}

// The margins of a plot.
const (
	left, right, top, bottom = 64.0, 12.0, 30.0, 24.0
)

// num writes a coordinate: a tenth is enough.
func num(x float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0") }

// svg returns the picture, with a description for those who do not see it.
func (p *plot) svg() string {
	var b strings.Builder
	most := p.most()
	w, h := p.width-left-right, p.height-top-bottom
	y := func(v float64) float64 { return top + h*(1-v/most) }
	fmt.Fprintf(&b, `<svg viewBox="0 0 %s %s" role="img"><title>%s</title>`, num(p.width), num(p.height), html.EscapeString(p.title))
	fmt.Fprintf(&b, `<text x="4" y="14" class="t">%s</text>`, html.EscapeString(p.title))
	for i := range 3 {
		v := most * float64(i) / 2
		fmt.Fprintf(&b, `<line x1="%s" y1="%s" x2="%s" y2="%s" class="g"/>`, num(left), num(y(v)), num(left+w), num(y(v)))
		fmt.Fprintf(&b, `<text x="%s" y="%s" class="r">%s</text>`, num(left-6), num(y(v)+4), short(v)+p.unit)
	}
	for i, anchor := range []string{"l", "m", "r"} {
		at := p.start.Add(p.length * time.Duration(i) / 2)
		fmt.Fprintf(&b, `<text x="%s" y="%s" class="%s">%s</text>`, num(left+w*float64(i)/2), num(p.height-6), anchor, at.Format("Jan 2 15:04"))
	}
	for _, s := range p.series {
		points := p.points(s, w, y)
		if s.filled {
			fmt.Fprintf(&b, `<polygon points="%s,%s %s %s,%s" fill="%s" fill-opacity=".35"/>`,
				num(left), num(top+h), points, num(left+w), num(top+h), s.colour)
			continue
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`, points, s.colour)
	}
	if p.level > 0 && p.level <= most {
		fmt.Fprintf(&b, `<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s" stroke-dasharray="6 3"/>`,
			num(left), num(y(p.level)), num(left+w), num(y(p.level)), colourLimit)
	}
	p.legend(&b)
	return b.String() + "</svg>\n"
}

// points returns the points of a line, a step for each value.
func (p *plot) points(s series, w float64, y func(float64) float64) string {
	points := make([]string, 0, 2*len(s.values))
	step := w / float64(len(s.values))
	for i, v := range s.values {
		points = append(points, num(left+step*float64(i))+","+num(y(v)), num(left+step*float64(i+1))+","+num(y(v)))
	}
	return strings.Join(points, " ")
}

func (p *plot) legend(b *strings.Builder) {
	x := p.width - right
	entry := func(name, colour string) {
		fmt.Fprintf(b, `<text x="%s" y="14" class="r" style="fill:%s">%s</text>`, num(x), colour, html.EscapeString(name))
		x -= 14 + 7*float64(len([]rune(name)))
	}
	if p.level > 0 {
		entry(p.levelName, colourLimit)
	}
	for _, s := range slices.Backward(p.series) {
		entry(s.name, s.colour)
	}
}

// most returns the largest value that the plot shows, rounded up.
func (p *plot) most() float64 {
	most := p.level
	for _, s := range p.series {
		for _, v := range s.values {
			most = max(most, v)
		}
	}
	if most <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(most)))
	for _, k := range []float64{1, 2, 4, 6, 8} {
		if most <= k*unit {
			return k * unit
		}
	}
	return 10 * unit
}

// short returns a number in a few characters.
func short(v float64) string {
	switch {
	case v >= 1e9:
		return fmt.Sprintf("%.3gG", v/1e9)
	case v >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.3gk", v/1e3)
	}
	return fmt.Sprintf("%.3g", v)
}
