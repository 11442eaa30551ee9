package config

import "testing"

func FuzzFile(f *testing.F) {
	for _, s := range []string{"a: 1\n", "max: [1]\nper: {a: b}\n", "a: &x 1\nb: *x\n", "---\n...\n", "? a\n: b\n", "<<: *x\n", "a: !!binary x\n", "- 1", "a: |\n  x\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		root, err := parse("f", b)
		if err != nil || root == nil {
			return
		}
		r := fileReader[settings]{name: "f", fields: table, lines: map[string]int{}}
		var s settings
		for i := 0; i+1 < len(root.Content); i += 2 {
			r.setting(root.Content[i], root.Content[i+1], &s)
		}
	})
}
