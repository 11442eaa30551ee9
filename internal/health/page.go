package health

import (
	"fmt"
	"html/template"
)

// mostRows is how many processors the page lists; JSON has all.
const mostRows = 200

var page = template.Must(template.New("statusz").Funcs(template.FuncMap{
	"percent": func(f float64) string { return fmt.Sprintf("%.2f %%", 100*f) },
	"number":  func(f float64) string { return fmt.Sprintf("%.4g", f) },
	"first": func(rows []Processor) []Processor {
		return rows[:min(len(rows), mostRows)]
	},
	"more": func(rows []Processor) int { return max(len(rows)-mostRows, 0) },
}).Parse(`<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>numathrottle</title>
<style>
body { font-family: sans-serif; margin: 2em; max-width: 60em }
table { border-collapse: collapse; margin: 0.5em 0 1.5em }
th, td { text-align: left; padding: 0.2em 1em 0.2em 0; border-bottom: 1px solid #ddd; vertical-align: top }
td.n, th.n { text-align: right }
.bad { color: #a00 }
</style></head>
<body>
<h1>numathrottle</h1>
<p>{{.Now.Format "2006-01-02 15:04:05 MST"}} · <a href="/statusz?format=json">JSON</a> · <a href="/metrics">metrics</a></p>
{{range .Limits}}
<h2>{{.Name}}</h2>
<table>
<tr><th>Ready</th><td>{{if .Ready}}yes{{else}}<span class="bad">no: {{.NotReady}}</span>{{end}}</td></tr>
<tr><th>Limit</th><td>{{if .Max}}{{.Max}} per {{.Per}}, burst {{.Burst}}{{if .Hard}}, hard{{end}}; {{number .Ceiling}} per second in the long run{{else}}none{{end}}</td></tr>
<tr><th>Share</th><td>{{percent .Share}}: {{number .Rate}} tokens per second{{if .Degraded}}, <span class="bad">without the store's consent</span>{{end}}</td></tr>
<tr><th>Throttled</th><td>{{with .Throttled}}<span class="bad">{{.Reason}}</span>{{if .RetryAfter}}, a token in {{.RetryAfter}}{{end}}{{else}}no{{end}}</td></tr>
<tr><th>Waiting</th><td>{{.Waiting}}</td></tr>
<tr><th>Tokens</th><td>{{number .Tokens}} at hand; {{.Granted}} granted, {{.Returned}} given back, {{.Refused}} refused</td></tr>
<tr><th>Store</th><td>{{.Store.URL}}{{if .Store.Failures}}, <span class="bad">{{.Store.Failures}} syncs failed</span>{{end}}{{if .Store.LastError}}<br><span class="bad">{{.Store.LastError}}</span>{{end}}</td></tr>
{{with .Pool}}
<tr><th>Pool</th><td>{{.Name}}: {{.Processors}} processors, {{if .Agreed}}agreed{{else}}pool size {{.PoolSize}} not agreed{{end}}</td></tr>
<tr><th>This processor</th><td>{{.ID}}: {{.State}}; wants {{percent .Wanted}}, demand {{percent .Demand}}</td></tr>
<tr><th>Lease</th><td>{{.LeaseLeft}} left of {{.Lease}}; a sync every {{.Interval}}</td></tr>
{{if .Frozen}}<tr><th>Frozen</th><td class="bad">for {{.Frozen}}: {{.FrozenBy}}</td></tr>{{end}}
{{end}}
</table>
{{if .HeldBack}}
<h3>Held back</h3>
<table>
<tr><th>Reason</th><th class="n">Waits</th><th class="n">Refusals</th><th class="n">Time</th></tr>
{{range .HeldBack}}<tr><td>{{.Reason}}</td><td class="n">{{.Waits}}</td><td class="n">{{.Refusals}}</td><td class="n">{{.Time}}</td></tr>
{{end}}</table>
{{end}}
{{with .Pool}}{{if .Roster}}
<h3>Processors</h3>
<table>
<tr><th>ID</th><th class="n">Claim</th><th class="n">Demand</th><th class="n">Pool size</th></tr>
{{range first .Roster}}<tr><td>{{.ID}}</td><td class="n">{{percent .Claim}}</td><td class="n">{{percent .Demand}}</td><td class="n">{{.PoolSize}}</td></tr>
{{end}}</table>
{{with more .Roster}}<p>and {{.}} more</p>{{end}}
{{end}}{{end}}
{{else}}<p>No limits.</p>
{{end}}
</body></html>
`))
