package pattern

import "strings"

// canonicalModule returns the name as the kernel has it: underscores for the dashes that
// file names have, vmlinux for the kernel itself.
func canonicalModule(name string) string {
	if name == "" {
		return vmlinux
	}
	if strings.IndexByte(name, '-') < 0 {
		return name
	}
	return strings.ReplaceAll(name, "-", "_")
}

// canonicalModuleGlob does the same for a glob, where a dash in a class is a range.
func canonicalModuleGlob(s string) string {
	if !strings.Contains(s, "-") {
		return s
	}
	b := []byte(s)
	for i := 0; ; i++ {
		next := indexOutside(s[i:], "-")
		if next < 0 {
			return string(b)
		}
		i += next
		b[i] = '_'
	}
}

// compileModule returns the matcher of the module part, for canonical names.
func compileModule(p piece) (*glob, *SyntaxError) {
	items, err := globItems(p)
	if err != nil {
		return nil, err
	}
	for i := range items {
		if items[i].r == '-' {
			items[i].r = '_'
		}
	}
	return newGlob(items), nil
}

// foreign has the words that other tools put before a colon, with what to do here. None is
// the name of a module in the kernel tree.
var foreign = map[string]string{
	"kprobe": "kprobe", "k": "kprobe", "p": "kprobe", "kretprobe": "kretprobe", "kr": "kretprobe", "r": "kretprobe",
	"kprobe.multi": "kprobe.multi", "kretprobe.multi": "kretprobe.multi", "kprobe.session": "kprobe.session",
	"ksession": "kprobe.session",
	"fentry":   "fentry", "f": "fentry", "kfunc": "fentry", "fexit": "fexit", "fr": "fexit", "kretfunc": "fexit",
	"fsession": "fsession", "fentry.multi": "fentry.multi", "fexit.multi": "fexit.multi", "fsession.multi": "fsession.multi",
	"tracepoint": "", "t": "", "rawtracepoint": "", "rt": "", "uprobe": "", "u": "", "uretprobe": "", "ur": "", "usdt": "", "U": "",
	"syscalls": "",
}

// checkForeign refuses a probe type in the place of the module.
func checkForeign(mod piece, name string) *SyntaxError {
	mechanism, ok := foreign[mod.s]
	if !ok {
		return nil
	}
	switch {
	case mod.s == "syscalls":
		return mod.fail(0, `"syscalls" is no module`, "type a system call as syscall:openat")
	case mechanism == "":
		return mod.fail(0, `"`+mod.s+`" is a probe type that takes no kernel functions`, "type a kernel function, as in vfs_read")
	}
	hint := "type " + name + ", with --mechanism " + mechanism + " where it matters"
	if !strings.Contains(name, ":") {
		hint += "; for a module of that name type [" + mod.s[:1] + "]" + mod.s[1:] + ":" + name
	}
	return mod.fail(0, `"`+mod.s+`" is a probe type`, hint)
}
