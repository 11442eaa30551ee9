package wrap

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMarkdown(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", 40)) // 199 columns
	half := strings.TrimSpace(strings.Repeat("word ", 26))
	rest := strings.TrimSpace(strings.Repeat("word ", 14))
	for name, c := range map[string]struct{ text, want string }{
		"a paragraph":        {long, half + "\n" + rest},
		"with what is next":  {long + "\nnext", half + "\n" + rest + " next"},
		"an item":            {"- " + long + "\n- next", "- " + half[:len(half)-5] + "\n  word " + rest + "\n- next"},
		"a numbered item":    {"1. a\n   b\n2. " + long, "1. a\n   b\n2. " + half[:len(half)-5] + "\n   word " + rest},
		"a nested item":      {"  - " + long, "  - " + half[:len(half)-5] + "\n    word " + rest},
		"one that fits":      {"a\n" + strings.Repeat("b ", 70)[:139] + "\nc", "a\n" + strings.Repeat("b ", 70)[:139] + "\nc"},
		"the row of a table": {"| " + long + " |", "| " + long + " |"},
		"a heading":          {"## " + long, "## " + long},
		"code":               {"```sh\n" + long + "\n```\nx", "```sh\n" + long + "\n```\nx"},
		"code in an item":    {"   ```sh\n   " + long + "\n   ```", "   ```sh\n   " + long + "\n   ```"},
		"a comment":          {"<!-- " + long + " -->", "<!-- " + long + " -->"},
		"code in a line":     {half + " `a b c d e f g`, x", half + "\n`a b c d e f g`, x"},
		"a link":             {half + " ([the long text](a.md#b)), x", half + "\n([the long text](a.md#b)), x"},
		"a lone backtick":    {half + " aa ` b c d e f g", half + "\naa ` b c d e f g"},
		"no new item":        {half + " - next word words", half + " -\nnext word words"},
		"no new number":      {half + " 12. next word words", half + " 12.\nnext word words"},
		"one long word":      {strings.Repeat("x", 200) + " y", strings.Repeat("x", 200) + "\ny"},
		"the end":            {long + "\n", half + "\n" + rest + "\n"},
	} {
		got := Markdown(c.text)
		require.Equal(t, c.want, got, name)
		require.Equal(t, got, Markdown(got), "%s, once more", name)
		require.Equal(t, strings.Fields(c.text), strings.Fields(got), name)
	}
}

func TestLong(t *testing.T) {
	wide := strings.Repeat("ä ", 71)
	require.Equal(t, []int{2, 7}, Long("a\n"+wide+"\n```\n"+wide+"\n```\n| "+wide+"\n- "+wide+"\n# "+wide))
	require.Empty(t, Long(strings.Repeat("ä", Most)+"\n- `"+wide+"`\n"+strings.Repeat("ä", Most+1)))
}
