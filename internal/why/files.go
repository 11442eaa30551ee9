package why

import (
	"slices"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
)

// Files are the settings files of a pool's pods.
type Files struct {
	// InForce names the changed file that counts for all pods; empty: none has changed. Limit means that the limit in force is from it.
	InForce string
	Limit   bool
	// Gone means that no pod has that file any more.
	Gone bool
	// Others are pods whose file is another one, Faulty those whose file cannot be used, and Restart those that need a restart for some
	// settings of it.
	Others, Faulty, Restart []string
}

// filesOf returns the settings files of a pool. Silent pods have no say.
func filesOf(o *protocol.Overview) (f Files) {
	common := o.File.Hash
	if common != "" {
		f.InForce, f.Limit = o.File.String(), o.File.Max > 0 && o.Override.Max == 0 && !o.Announced.Followed && !o.Announced.Awaited
	}
	f.Gone = common != ""
	for i := range o.Processors {
		row := &o.Processors[i]
		if row.Overdue || row.File == "" {
			continue
		}
		if common == "" {
			common = row.File
		}
		f.Gone = f.Gone && row.File != common
		for _, in := range []struct {
			list *[]string
			is   bool
		}{{&f.Others, row.File != common}, {&f.Faulty, row.FileFault}, {&f.Restart, row.FileRestart}} {
			if in.is {
				*in.list = append(*in.list, row.ID)
			}
		}
	}
	return f
}

// files says what is unusual about the settings files; empty: nothing is.
func (s *State) files() string {
	text := ""
	switch f := &s.Files; {
	case f.Gone && len(s.Pods) > 0:
		text = "; the settings of " + plain(f.InForce) + " count, but no pod has that file any more" + s.inPool(": ", "file clear", "")
	case len(f.Others) > 0 && f.InForce != "":
		text = "; the settings files of pods differ: " + plain(f.InForce) + " counts for all, and " + names(f.Others) + has(f.Others) + "another one"
	case len(f.Others) > 0:
		text = "; the settings files of pods differ: " + names(f.Others) + has(f.Others) + "another one than others"
	}
	if list := s.Files.Faulty; len(list) > 0 {
		text += "; " + names(list) + has(list) + "a settings file that cannot be used, as the log says: what was in force before stays"
	}
	if list := s.Files.Restart; len(list) > 0 {
		verb := " need"
		if len(list) == 1 {
			verb = " needs"
		}
		text += "; " + names(list) + verb + " a restart for some settings of the file, as the log says"
	}
	return text
}

func has(list []string) string {
	if len(list) == 1 {
		return " has "
	}
	return " have "
}

// names lists a few pods.
func names(ids []string) string {
	const most = 3
	list := make([]string, 0, most+1)
	for _, id := range ids[:min(len(ids), most)] {
		list = append(list, plain(id))
	}
	if len(ids) > most {
		list = append(list, "others")
	}
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
	return list[0]
}

// withoutFile removes settings that the file in force decides for all pods.
func (f *Files) withoutFile(differing []string) []string {
	return slices.DeleteFunc(differing, func(name string) bool { return f.Limit && name == "limit" })
}
