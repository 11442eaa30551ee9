package config

import (
	"fmt"
	"strings"
)

// Table returns the reference of the settings as a Markdown table.
func Table[C any](fields []Field[C]) string { return RowTable(Rows(fields)) }

// StoreTable returns the reference of the store URLs as a Markdown table.
func StoreTable() string {
	var b strings.Builder
	b.WriteString("| URL | Store | Parameters |\n|---|---|---|\n")
	for i := range schemes {
		s := &schemes[i]
		params := "none"
		if names := s.paramNames(); len(names) > 0 {
			params = "`" + strings.Join(names, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.form, s.doc, params)
	}
	return b.String()
}

// ParamTable returns the reference of the parameters of store URLs as a Markdown table. A name with different meanings in different URLs
// has a row for each.
func ParamTable() string {
	var b strings.Builder
	b.WriteString("| Parameter | Allowed | Default | What it does |\n|---|---|---|---|\n")
	seen := map[string]bool{}
	for i := range schemes {
		for j := range schemes[i].params {
			p := &schemes[i].params[j]
			row := fmt.Sprintf("| `%s` | %s | %s | %s |\n", p.name, p.allowed, p.byDefault, p.doc)
			if !seen[row] {
				seen[row] = true
				b.WriteString(row)
			}
		}
	}
	return b.String()
}

// ReplaceTable returns a page with the table of that name replaced: the part between a line that begins with "<!-- NAME:" and the next
// "<!-- end -->".
func ReplaceTable(page, name, table string) (string, error) {
	before, rest, found := strings.Cut(page, "<!-- "+name+":")
	comment, rest, _ := strings.Cut(rest, "\n")
	_, after, ended := strings.Cut(rest, "<!-- end -->")
	switch {
	case !found:
		return "", fmt.Errorf("no table %q, allowed: a line <!-- %s: ... -->", name, name)
	case !ended:
		return "", fmt.Errorf("table %q has no end, allowed: <!-- end --> behind it", name)
	}
	return before + "<!-- " + name + ":" + comment + "\n" + table + "<!-- end -->" + after, nil
}
