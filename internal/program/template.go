package program

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// TemplateFields returns an error that names a field that the data never has, and the existing ones. It checks only where the dot is the data
// itself: inside range and with it is not, and a nested template may receive any data.
func TemplateFields(t *template.Template, known ...string) error {
	if t.Tree == nil {
		return nil
	}
	if name := templateFields(known).unknown(t.Root); name != "" {
		return fmt.Errorf("it has .%.40s, allowed: .%s", name, strings.Join(known, ", ."))
	}
	return nil
}

type templateFields []string

// unknown returns the first field of a list that is not known; empty for none.
func (known templateFields) unknown(list *parse.ListNode) string {
	if list == nil {
		return ""
	}
	for _, node := range list.Nodes {
		name := ""
		switch n := node.(type) {
		case *parse.ActionNode:
			name = known.inPipe(n.Pipe)
		case *parse.IfNode:
			name = cmp.Or(known.inPipe(n.Pipe), known.unknown(n.List), known.unknown(n.ElseList))
		case *parse.RangeNode:
			name = cmp.Or(known.inPipe(n.Pipe), known.unknown(n.ElseList))
		case *parse.WithNode:
			name = cmp.Or(known.inPipe(n.Pipe), known.unknown(n.ElseList))
		}
		if name != "" {
			return name
		}
	}
	return ""
}

func (known templateFields) inPipe(p *parse.PipeNode) string {
	for _, command := range p.Cmds {
		for _, arg := range command.Args {
			name := ""
			switch n := arg.(type) {
			case *parse.FieldNode:
				name = n.Ident[0]
			case *parse.PipeNode:
				if inner := known.inPipe(n); inner != "" {
					return inner
				}
			}
			if name != "" && !slices.Contains(known, name) {
				return name
			}
		}
	}
	return ""
}
