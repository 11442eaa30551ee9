// Package operators makes mutants of the product for its tests: in each, one operator is another one, such as <= for < or - for +. All mutants
// of a package are compiled at once, each behind a switch, by "go test -overlay"; a process plays the one that an environment variable names.
package operators

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// A Mutant is one operator that is another one.
type Mutant struct {
	ID       int
	File     string // from the root of the module
	Line     int
	In       string // the function or method, or "" for a variable
	Text     string // the expression or statement, in one line
	From, To string // operators, or the names of min and max
	nth      int    // among those with the same text in the same function
}

// String is a name that stays as lines move: the file, the function, what is written there, and the operators.
func (m *Mutant) String() string {
	nth := ""
	if m.nth > 1 {
		nth = fmt.Sprintf(" (%d)", m.nth)
	}
	return fmt.Sprintf("%s %s: %s: %s for %s%s", m.File, cmp.Or(m.In, "-"), m.Text, m.To, m.From, nth)
}

// logic are the operators whose result is a bool, and arithmetic the functions of the switches' file for those whose result is a number.
var (
	logic = map[token.Token]token.Token{
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
		token.LAND: token.LOR, token.LOR: token.LAND,
	}
	arithmetic = map[token.Token]operation{
		token.ADD: {"mutantAdd", "-"}, token.SUB: {"mutantSub", "+"}, token.MUL: {"mutantMul", "/"}, token.QUO: {"mutantQuo", "*"},
	}
	assignments = map[token.Token]token.Token{
		token.ADD_ASSIGN: token.ADD, token.SUB_ASSIGN: token.SUB, token.MUL_ASSIGN: token.MUL, token.QUO_ASSIGN: token.QUO,
		token.INC: token.ADD, token.DEC: token.SUB,
	}
	extremes = map[string]operation{"min": {"mutantMin", "max"}, "max": {"mutantMax", "min"}}
)

// An operation is a function of the switches' file, and the operator of its mutant.
type operation struct{ function, to string }

// A rewriter puts the switches into one file.
type rewriter struct {
	name    string
	text    []byte
	fset    *token.FileSet
	info    *types.Info
	list    []Mutant
	first   int // ID of the first mutant
	seen    map[string]int
	within  string
	forPost map[ast.Node]bool
}

// rewrite returns a file with the switches of its mutants, whose IDs begin with first.
func rewrite(name string, text []byte, fset *token.FileSet, file *ast.File, info *types.Info, first int) (string, []Mutant) {
	r := &rewriter{name: name, text: text, fset: fset, info: info, first: first, seen: map[string]int{}, forPost: map[ast.Node]bool{}}
	var out strings.Builder
	at := file.FileStart
	for _, d := range file.Decls {
		if g, is := d.(*ast.GenDecl); is && g.Tok != token.VAR {
			continue
		}
		r.within = ""
		if f, is := d.(*ast.FuncDecl); is {
			r.within = functionName(f)
		}
		out.WriteString(r.source(at, d.Pos()) + r.render(d))
		at = d.End()
	}
	return out.String() + r.source(at, file.FileEnd), r.list
}

// functionName is a function's name, or that of its receiver's type and the method's.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	for {
		switch of := t.(type) {
		case *ast.StarExpr:
			t = of.X
		case *ast.IndexExpr:
			t = of.X
		case *ast.Ident:
			return of.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

func (r *rewriter) source(from, to token.Pos) string {
	return string(r.text[r.fset.Position(from).Offset:r.fset.Position(to).Offset])
}

// render returns the source of a node with the switches of all mutants in its parts, but not of its own.
func (r *rewriter) render(n ast.Node) string {
	var out strings.Builder
	at := n.Pos()
	ast.Inspect(n, func(part ast.Node) bool {
		if f, is := part.(*ast.ForStmt); is && f.Post != nil {
			r.forPost[f.Post] = true
		}
		if g, is := part.(*ast.GenDecl); is && g.Tok == token.CONST {
			return false
		}
		if part == nil || part == n {
			return true
		}
		text, is := r.mutant(part)
		if !is {
			return true
		}
		out.WriteString(r.source(at, part.Pos()) + text)
		at = part.End()
		return false
	})
	return out.String() + r.source(at, n.End())
}

// mutant returns the source of a node with its switch, if it is one that has a mutant.
func (r *rewriter) mutant(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if to, is := logic[n.Op]; is && r.plainBool(n) {
			id := r.note(n, n.Op.String(), to.String())
			x, y := r.source(n.X.Pos(), n.X.End()), r.source(n.Y.Pos(), n.Y.End())
			return fmt.Sprintf("(mutant(%d) && ((%s) %s (%s)) || !mutant(%d) && (%s %s %s))", id, x, to, y, id, r.operand(n.X), n.Op, r.operand(n.Y)), true
		}
		if op, is := arithmetic[n.Op]; is && r.number(n) {
			id := r.note(n, n.Op.String(), op.to)
			return fmt.Sprintf("%s(%d, %s, %s)", op.function, id, r.operand(n.X), r.operand(n.Y)), true
		}
	case *ast.CallExpr:
		if name, is := n.Fun.(*ast.Ident); is && r.builtin(name) && r.number(n) && len(n.Args) > 1 {
			op := extremes[name.Name]
			id := r.note(n, name.Name, op.to)
			args := make([]string, len(n.Args))
			for i, a := range n.Args {
				args[i] = r.operand(a)
			}
			return fmt.Sprintf("%s(%d, %s)", op.function, id, strings.Join(args, ", ")), true
		}
	case *ast.AssignStmt:
		if op, is := assignments[n.Tok]; is {
			return r.assignment(n, op, n.Lhs[0], func() string { return r.operand(n.Rhs[0]) })
		}
	case *ast.IncDecStmt:
		return r.assignment(n, assignments[n.Tok], n.X, func() string { return "1" })
	}
	return "", false
}

// operand is render for an operand, which may have a mutant itself.
func (r *rewriter) operand(n ast.Expr) string {
	if text, is := r.mutant(n); is {
		return text
	}
	return r.render(n)
}

// assignment is mutant for an assignment with an operator, unless a loop would never end without it.
func (r *rewriter) assignment(n ast.Stmt, op token.Token, left ast.Expr, right func() string) (string, bool) {
	pure := true // evaluating it twice does no harm
	ast.Inspect(left, func(part ast.Node) bool {
		_, call := part.(*ast.CallExpr)
		pure = pure && !call
		return true
	})
	if !pure || r.forPost[n] || !r.number(left) {
		return "", false
	}
	o, value := arithmetic[op], right()
	id := r.note(n, op.String(), o.to)
	x := r.source(left.Pos(), left.End())
	return fmt.Sprintf("%s = %s(%d, %s, %s)", x, o.function, id, x, value), true
}

// note numbers a mutant.
func (r *rewriter) note(n ast.Node, from, to string) (id int) {
	m := Mutant{
		ID: r.first + len(r.list), File: r.name, Line: r.fset.Position(n.Pos()).Line, In: r.within, From: from, To: to,
		Text: strings.Join(strings.Fields(r.source(n.Pos(), n.End())), " "),
	}
	key := m.String()
	r.seen[key]++
	m.nth = r.seen[key]
	r.list = append(r.list, m)
	return m.ID
}

// plainBool reports whether an expression is a bool that isn't a constant, and not of a type of its own.
func (r *rewriter) plainBool(e ast.Expr) bool {
	t := r.info.Types[e]
	basic, is := t.Type.(*types.Basic)
	return is && t.Value == nil && basic.Info()&types.IsBoolean != 0
}

// number reports whether an expression is a number that isn't a constant.
func (r *rewriter) number(e ast.Expr) bool {
	t := r.info.Types[e]
	if t.Type == nil || t.Value != nil {
		return false
	}
	basic, is := t.Type.Underlying().(*types.Basic)
	return is && basic.Info()&(types.IsInteger|types.IsFloat) != 0 && basic.Info()&types.IsUntyped == 0
}

// builtin reports whether a name is that of the builtin min or max.
func (r *rewriter) builtin(name *ast.Ident) bool {
	_, is := r.info.Uses[name].(*types.Builtin)
	_, extreme := extremes[name.Name]
	return is && extreme
}
