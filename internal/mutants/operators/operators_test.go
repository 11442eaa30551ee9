package operators

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// product is a package with each kind of operator, and some that have no mutant: in constants, on strings, where a loop steps.
const product = `package product

const two = 1 + 1

type number int

func (n number) scale(f float64) float64 { return float64(n) * f / two }

func count(list []int, most int) (n int) {
	for i := 0; i < len(list); i++ {
		if list[i] == 0 || list[i] > most &&
			n < 6 {
			continue
		}
		n += min(list[i], 5)
	}
	return max(n-1, 0)
}

func name(a string) string { return a + "!" }
`

func rewritten(t *testing.T, text string) (string, []Mutant) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "product.go", text, parser.ParseComments)
	require.NoError(t, err)
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	_, err = (&types.Config{}).Check("product", fset, []*ast.File{file}, info)
	require.NoError(t, err)
	return rewrite("product.go", []byte(text), fset, file, info, 1)
}

func TestMutantsOfAFile(t *testing.T) {
	_, list := rewritten(t, product)
	var names []string
	for i, m := range list {
		require.Equal(t, i+1, m.ID)
		names = append(names, m.String())
	}
	require.Equal(t, []string{
		"product.go number.scale: float64(n) * f / two: * for /",
		"product.go number.scale: float64(n) * f: / for *",
		"product.go count: i < len(list): <= for <",
		"product.go count: list[i] == 0 || list[i] > most && n < 6: && for ||",
		"product.go count: list[i] == 0: != for ==",
		"product.go count: list[i] > most && n < 6: || for &&",
		"product.go count: list[i] > most: >= for >",
		"product.go count: n < 6: <= for <",
		"product.go count: min(list[i], 5): max for min",
		"product.go count: n += min(list[i], 5): - for +",
		"product.go count: max(n-1, 0): min for max",
		"product.go count: n-1: + for -",
	}, names)
	_, twice := rewritten(t, "package product\n\nfunc f(a, b int) bool { return a < b || (a < b) }\n")
	require.Equal(t, "product.go f: a < b: <= for < (2)", twice[2].String())
	_, once := rewritten(t, "package product\n\nfunc f(a []int, g func() int) { a[g()] += len(a) - 1 }\n")
	require.Len(t, once, 1, "an assignment that would call g twice has no mutant, and its value has one")
}

// The file with the switches does what the file does, unless a mutant is in force: then it does what the mutant says.
func TestSwitches(t *testing.T) {
	dir := t.TempDir()
	text, list := rewritten(t, product)
	const program = `
func main() { println(count([]int{8, 7, 1, 0, 9, 2}, 7), int(number(6).scale(2)), name("x")) }
`
	for name, text := range map[string]string{
		"go.mod": "module product\n\ngo 1.24\n", "switches.go": switches("main"),
		"product.go": strings.Replace(text, "package product", "package main", 1) + program,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	binary := filepath.Join(dir, "product")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	play := func(setting string) string {
		cmd := exec.CommandContext(t.Context(), binary)
		cmd.Env = append(os.Environ(), setting)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "fails"
		}
		return strings.TrimSpace(string(out))
	}
	require.Equal(t, "12 6 x!", play(variable+"="))
	for i := range list {
		require.NotEqual(t, "12 6 x!", play(variable+"="+strconv.Itoa(list[i].ID)), "%s", &list[i])
	}
	reached := filepath.Join(dir, "reached")
	require.Equal(t, "12 6 x!", play(recordVariable+"="+reached))
	ids, err := os.ReadFile(reached)
	require.NoError(t, err)
	require.Len(t, strings.Fields(string(ids)), len(list), "each mutant's place is reached, and noted once")
}

// Each mutant that survives for a reason is one that there is.
func TestReasonsNameMutants(t *testing.T) {
	known := map[string]bool{}
	for _, target := range Targets {
		if !slices.ContainsFunc(target.Packages, func(p string) bool { return strings.Contains(survivors, "\n"+strings.Trim(p, "./")+"/") }) {
			continue
		}
		set, err := Load(t.Context(), "../../..", target.Packages...)
		require.NoError(t, err)
		for i := range set.Mutants {
			known[set.Mutants[i].String()] = true
		}
	}
	for name, reason := range Reasons() {
		require.True(t, known[name], "survivors.txt: there is no mutant %q", name)
		require.NotEmpty(t, reason, "survivors.txt: no reason for %q", name)
	}
}

func TestChoose(t *testing.T) {
	_, all := rewritten(t, product)
	sample := choose(all, Options{Sample: 4})
	require.Len(t, sample, 4)
	require.True(t, slices.IsSortedFunc(sample, func(a, b Mutant) int { return a.ID - b.ID }))
	shuffled := slices.Clone(all)
	slices.Reverse(shuffled)
	require.Equal(t, sample, choose(shuffled, Options{Sample: 4}), "a sample depends on the names only")
	require.Equal(t, all, choose(all, Options{}))
	require.Equal(t, all[:2], choose(all, Options{Only: "number.scale"}))
	_, err := Find("engine", "engines")
	require.EqualError(t, err, `target is "engines", allowed: engine, throttle, fairtags, fairslots, protocol, driver, readers, http, llm`)
}

// A mutant is played with the tests that reach it: the quick ones first, of all packages, each test once.
func TestQuickTestsComeFirst(t *testing.T) {
	a, b := &suite{pkg: "a"}, &suite{pkg: "b"}
	of := func(s *suite, name string, took time.Duration, ids ...int) test {
		reaches := map[int]bool{}
		for _, id := range ids {
			reaches[id] = true
		}
		return test{suite: s, name: name, took: took, reaches: reaches}
	}
	tests := []test{
		of(a, "TestSlow", time.Minute, 1), of(a, "TestOther", time.Millisecond, 2), of(a, "TestSecond", time.Second, 1, 2),
		of(b, "TestQuick", time.Millisecond, 1), of(a, "TestFast", 200*time.Millisecond, 1), of(b, "TestMinute", time.Minute, 1),
	}
	played := func(id int) (got []string) {
		for _, p := range parts(tests, id) {
			got = append(got, fmt.Sprint(p.pkg, p.names, p.took))
		}
		return got
	}
	require.Equal(t, []string{
		"b[TestQuick] 1ms", "a[TestFast] 200ms", "a[TestSecond] 1s", "a[TestSlow] 1m0s", "b[TestMinute] 1m0s",
	}, played(1))
	require.Equal(t, []string{"a[TestOther TestSecond] 1.001s"}, played(2))
	require.Empty(t, played(3), "no test reaches it")
}
