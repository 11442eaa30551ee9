package whatif

import (
	"fmt"
	"html"
	"io"
	"strings"
)

const style = `body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:72em;padding:0 1em;color:#222;background:#fff}
table{border-collapse:collapse;width:100%;font-size:13px}th,td{border-bottom:1px solid #ddd;padding:.3em .5em;text-align:right}
th:first-child,td:first-child{text-align:left}thead th{border-bottom:2px solid #999;vertical-align:bottom}tbody tr:first-child{font-weight:bold}
.wide{overflow-x:auto}dl{display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em}dt{color:#555}dd{margin:0}
svg{width:100%;height:auto;font:11px sans-serif;margin:.5em 0}svg .t{font-weight:bold;font-size:13px}svg .r{text-anchor:end}svg .m{text-anchor:middle}
svg .g{stroke:#e4e4e4}.tags{display:grid;grid-template-columns:repeat(auto-fill,minmax(22em,1fr));gap:0 1em}`

// mostPlots is how many tags have plots of their own: those with most tokens.
const mostPlots = 60

// WritePage writes the comparison as one page of HTML. It loads nothing from elsewhere, and runs no scripts.
func (r *Report) WritePage(out io.Writer) error {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>numathrottle what-if</title>\n")
	b.WriteString(`<meta name="viewport" content="width=device-width, initial-scale=1"><style>` + style + "</style></head><body>\n<h1>What if</h1>\n<dl>")
	for _, line := range r.head() {
		fmt.Fprintf(&b, "<dt>%s</dt><dd>%s</dd>", html.EscapeString(line[0]), html.EscapeString(line[1]))
	}
	b.WriteString("</dl>\n")
	r.table(&b)
	for _, p := range r.plots() {
		b.WriteString(p.svg())
	}
	b.WriteString("<h2>Tokens a second, by tag</h2>\n<div class=\"tags\">\n")
	for _, i := range r.busiest() {
		b.WriteString(r.tagPlot(i).svg())
	}
	b.WriteString("</div>\n")
	if n := len(r.After.Tags); n > mostPlots {
		fmt.Fprintf(&b, "<p>The %d busiest of %d tags.</p>\n", mostPlots, n)
	}
	b.WriteString("</body></html>\n")
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *Report) table(b *strings.Builder) {
	b.WriteString("<div class=\"wide\"><table><thead><tr>")
	for _, c := range columns {
		fmt.Fprintf(b, "<th>%s</th>", c)
	}
	b.WriteString("</tr></thead><tbody>\n")
	for _, row := range r.rows() {
		b.WriteString("<tr>")
		for _, cell := range row {
			fmt.Fprintf(b, "<td>%s</td>", html.EscapeString(cell))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody></table></div>\n<p>Use is the part of the limit. Waits are those of granted calls. Of a budget it is the fullest window.</p>\n")
}

// busiest returns the tags that have plots, in the order of the table.
func (r *Report) busiest() (tags []int) {
	asked := r.asked()
	for i := range asked.Tags {
		more := 0
		for j := range asked.Tags {
			if asked.Tags[j].Tokens > asked.Tags[i].Tokens {
				more++
			}
		}
		if more < mostPlots && len(tags) < mostPlots {
			tags = append(tags, i)
		}
	}
	return tags
}

// asked is the recording as it came.
func (r *Report) asked() *Result {
	if r.recorded == nil {
		r.recorded = Recorded(r.Traffic, nil)
	}
	return r.recorded
}

// perBin returns a value for each part of the time.
func perBin(of *Result, value func(*Bin) float64) []float64 {
	values := make([]float64, len(of.Bins))
	for i := range of.Bins {
		values[i] = value(&of.Bins[i])
	}
	return values
}

// part is how long one bin is, in seconds.
func (r *Report) part() float64 {
	return r.Traffic.Length().Seconds() / float64(len(r.After.Bins))
}

// plots are those of all tags together.
func (r *Report) plots() []*plot {
	asked := r.asked()
	tokens := func(b *Bin) float64 { return b.Tokens / r.part() }
	use := r.plot("Tokens a second", "")
	use.series = []series{{name: "asked", colour: colourFaint, values: perBin(asked, tokens), filled: true}}
	wait := r.plot("p99 wait of the calls that came then", " s")
	refused := r.plot("Calls refused a second", "")
	for _, of := range []struct {
		*Result

		name, colour string
	}{{r.Before, "before", colourBefore}, {r.After, "after", colourAfter}} {
		if !of.Waited {
			continue
		}
		use.series = append(use.series, series{name: of.name, colour: of.colour, values: perBin(of.Result, tokens)})
		wait.series = append(wait.series, series{name: of.name, colour: of.colour, values: perBin(of.Result, func(b *Bin) float64 { return b.P99.Seconds() })})
		refused.series = append(refused.series, series{
			name: of.name, colour: of.colour, values: perBin(of.Result, func(b *Bin) float64 { return b.Refused / r.part() }),
		})
	}
	use.level, use.levelName = r.After.PerSecond, "limit after"
	return []*plot{use, wait, refused}
}

// tagPlot is that of one tag.
func (r *Report) tagPlot(i int) *plot {
	p := r.plot(tagText(r.After.Tags[i].Name), "")
	p.width, p.height = 420, 150
	tokens := func(b *Bin) float64 { return b.ByTag[i] / r.part() }
	p.series = []series{{name: "asked", colour: colourFaint, values: perBin(r.asked(), tokens), filled: true}}
	if r.Before.Waited {
		p.series = append(p.series, series{name: "before", colour: colourBefore, values: perBin(r.Before, tokens)})
	}
	p.series = append(p.series, series{name: "after", colour: colourAfter, values: perBin(r.After, tokens)})
	return p
}

func (r *Report) plot(title, unit string) *plot {
	return &plot{title: title, unit: unit, width: 900, height: 220, start: r.Traffic.Start, length: r.Traffic.Length()}
}
