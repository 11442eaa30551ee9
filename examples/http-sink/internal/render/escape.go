package render

import (
	"errors"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"
)

// escapeActions appends the escape for its place to each action of a URL's template that does not end in path, query or raw. The escape is
// query behind a "?" in the text, path before it.
func escapeActions(t *template.Template) error {
	if len(t.Templates()) > 1 || t.Tree == nil {
		return errors.New("has define or block, or is empty")
	}
	_, err := escapeList(t.Root, false)
	return err
}

// escapeList walks a list and reports whether its end is in the query.
func escapeList(list *parse.ListNode, query bool) (bool, error) {
	if list == nil {
		return query, nil
	}
	for _, node := range list.Nodes {
		var err error
		switch n := node.(type) {
		case *parse.TextNode:
			query = query || strings.Contains(string(n.Text), "?")
		case *parse.ActionNode:
			escapePipe(n.Pipe, query)
		case *parse.IfNode:
			query, err = escapeBranch(&n.BranchNode, query)
		case *parse.WithNode:
			query, err = escapeBranch(&n.BranchNode, query)
		case *parse.RangeNode:
			query, err = escapeBranch(&n.BranchNode, query)
		case *parse.CommentNode, *parse.BreakNode, *parse.ContinueNode:
		default:
			err = fmt.Errorf("has %q, allowed: values, if, with and range", node.String())
		}
		if err != nil {
			return query, err
		}
	}
	return query, nil
}

func escapeBranch(b *parse.BranchNode, query bool) (bool, error) {
	in, err := escapeList(b.List, query)
	if err != nil {
		return in, err
	}
	other, err := escapeList(b.ElseList, query)
	if err == nil && (in != query || other != query) {
		err = errors.New(`has the "?" of the query within if, with or range, allowed: outside of them`)
	}
	return query, err
}

func escapePipe(p *parse.PipeNode, query bool) {
	if len(p.Decl) > 0 || len(p.Cmds) == 0 { // $x := prints nothing
		return
	}
	if last, ok := p.Cmds[len(p.Cmds)-1].Args[0].(*parse.IdentifierNode); ok {
		switch last.Ident {
		case "path", "query", "raw":
			return
		}
	}
	escape := "path"
	if query {
		escape = "query"
	}
	p.Cmds = append(p.Cmds, &parse.CommandNode{
		NodeType: parse.NodeCommand, Pos: p.Pos,
		Args: []parse.Node{parse.NewIdentifier(escape).SetTree(nil).SetPos(p.Pos)},
	})
}
