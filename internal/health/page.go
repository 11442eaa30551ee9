package health

import (
	_ "embed"
	"fmt"
	"html/template"
)

//go:embed page.html
var pageHTML string

// mostRows bounds the pods on the page; JSON has all.
const mostRows = 200

var page = template.Must(template.New("statusz").Funcs(template.FuncMap{
	"percent": func(f float64) string { return fmt.Sprintf("%.2f %%", 100*f) },
	"number":  func(f float64) string { return fmt.Sprintf("%.4g", f) },
	"first": func(rows []Processor) []Processor {
		return rows[:min(len(rows), mostRows)]
	},
	"more": func(rows []Processor) int { return max(len(rows)-mostRows, 0) },
}).Parse(pageHTML))
