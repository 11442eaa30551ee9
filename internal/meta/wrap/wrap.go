// Package wrap breaks the long lines of Markdown pages.
package wrap

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// Most is how many columns a line may have.
	Most = 140
	// fill is the width of rewrapped paragraphs.
	fill = 130
)

// Long returns the numbers of the lines that are too long, from 1 on. Rows of tables, headings and code may be long, and so may a line of
// one word.
func Long(text string) []int {
	var long []int
	each(text, func(number int, line string, fixed bool) {
		if !fixed && utf8.RuneCountInString(line) > Most && len(word.FindAllString(line[len(item.FindString(line)):], 2)) > 1 {
			long = append(long, number)
		}
	})
	return long
}

// Markdown returns a page in which each paragraph and list item with an overlong line is rewrapped. All others stay unchanged. Neither code
// nor the text of a link is broken. Existing line breaks in them stay.
func Markdown(text string) string {
	var out []string
	var paragraph []string
	end := func() {
		out = append(out, broken(paragraph)...)
		paragraph = nil
	}
	each(text, func(_ int, line string, fixed bool) {
		switch {
		case fixed:
			end()
			out = append(out, line)
			return
		case item.MatchString(line):
			end()
		}
		paragraph = append(paragraph, line)
	})
	end()
	return strings.Join(out, "\n")
}

var (
	// item is the beginning of an item of a list.
	item = regexp.MustCompile(`^ *([-*+]|\d+\.) +`)
	// word matches the text between two possible line breaks.
	word = regexp.MustCompile("(`[^`]*`|\\[[^]]*\\]\\([^)]*\\)|[^ `\\[]|[`\\[])+")
	// begins is a word that would mean something else at the beginning of a line.
	begins = regexp.MustCompile(`^([-*+>|=#]|#+|\d+[.)]|<!--.*|` + "```.*" + `)$`)
)

// each reports for each line whether it is fixed: a row, a heading, code, a comment or empty.
func each(text string, tell func(number int, line string, fixed bool)) {
	code := false
	for i, line := range strings.Split(text, "\n") {
		start := strings.TrimSpace(line)
		fence := strings.HasPrefix(start, "```")
		tell(i+1, line, code || fence || start == "" || strings.HasPrefix(start, "|") || strings.HasPrefix(start, "#") || strings.HasPrefix(start, "<"))
		code = code != fence
	}
}

// broken returns a paragraph in lines that fit.
func broken(lines []string) []string {
	long := false
	for _, line := range lines {
		long = long || utf8.RuneCountInString(line) > Most
	}
	if !long {
		return lines
	}
	first := item.FindString(lines[0])
	if first == "" {
		first = lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], " "))]
	}
	indent := strings.Repeat(" ", utf8.RuneCountInString(first))
	lines[0] = strings.TrimPrefix(lines[0], first)
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	var out []string
	now, empty := first, true
	for _, w := range word.FindAllString(strings.Join(lines, " "), -1) {
		if !empty && utf8.RuneCountInString(now)+1+utf8.RuneCountInString(w) > fill && !begins.MatchString(w) {
			out, now, empty = append(out, now), indent, true
		}
		if !empty {
			now += " "
		}
		now, empty = now+w, false
	}
	return append(out, now)
}
