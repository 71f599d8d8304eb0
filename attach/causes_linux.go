package attach

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/bpf"
)

// An answer is an error number of the kernel and what it means for a target.
type answer struct {
	errno unix.Errno
	text  string
}

func (a *answer) Error() string { return bpf.ErrnoText(a.errno) + ": " + a.text }

func (a *answer) Unwrap() error { return a.errno }

func answerf(errno unix.Errno, format string, args ...any) error {
	return &answer{errno, fmt.Sprintf(format, args...)}
}

// number returns the name of the number in an error, in brackets, to end a
// sentence with.
func number(err error) string {
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	name, _, _ := strings.Cut(bpf.ErrnoText(errno), " ")
	return " (" + name + ")"
}

// causes is what the machine shows of why the kernel refuses a target. It is
// read when an error needs it, and once.
type causes struct {
	root      string // "/" outside of tests
	kernel    *kallscope.Kernel
	blacklist func() ([]kallscope.CodeRange, error)
	patched   func() map[string]string
}

func newCauses(root string, k *kallscope.Kernel) *causes {
	c := &causes{root: root, kernel: k, blacklist: k.KprobeBlacklist}
	c.patched = sync.OnceValue(c.readPatched)
	return c
}

// keptOut says by which list kprobes must stay out of a target.
func (c *causes) keptOut(t *kallscope.Target) string {
	list, err := c.blacklist()
	at := t.Addr + uint64(t.Offset)
	i := slices.IndexFunc(list, func(r kallscope.CodeRange) bool {
		return r.Start <= at && at < r.End || r.End == 0 && r.Name == t.Name
	})
	switch {
	case i >= 0:
		return fmt.Sprintf("it is in the kprobe blacklist (%s)", list[i])
	case err != nil:
		return fmt.Sprintf("it is notrace, or in the kprobe blacklist, which cannot be read: %v", err)
	}
	return "it is notrace, or its instruction cannot be probed; it is not in the kprobe blacklist"
}

// maxNamed is how many functions of one name an error lists.
const maxNamed = 8

// namesakes lists the functions that share a target's name.
func (c *causes) namesakes(t *kallscope.Target) string {
	table, err := c.kernel.Symbols()
	if err != nil {
		return "which cannot be read: " + err.Error()
	}
	var found []string
	for _, i := range table.ByName(t.Name) {
		if s := table.Symbol(i); s.IsText() {
			place := kallscope.Func{Name: s.Name, Module: s.Module}.String()
			if s.Addr != 0 {
				place = fmt.Sprintf("%#x %s", s.Addr, place)
			}
			found = append(found, place)
		}
	}
	if len(found) > maxNamed {
		found = append(found[:maxNamed], fmt.Sprintf("and %d more", len(found)-maxNamed))
	}
	return strings.Join(found, ", ")
}

// variants says under which names the compiler has kept a function.
func (c *causes) variants(t *kallscope.Target) string {
	table, err := c.kernel.Symbols()
	if err != nil {
		return ""
	}
	var names []string
	for _, i := range table.Variants(t.Name) {
		if s := table.Symbol(i); s.IsText() {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", only " + strings.Join(names[:min(len(names), maxNamed)], ", ")
}

// holder says who has patched a function, where that can be seen.
func (c *causes) holder(t *kallscope.Target) string {
	object := t.Module
	patches, _ := filepath.Glob(filepath.Join(c.root, "sys/kernel/livepatch/*", object, t.Name+",*"))
	if len(patches) > 0 {
		return "live patch " + filepath.Base(filepath.Dir(filepath.Dir(patches[0])))
	}
	if how, ok := c.patched()[t.Func.String()]; ok {
		return "ftrace: " + how
	}
	return "who is not to be seen in livepatch and enabled_functions"
}

// readPatched reads which functions have something on them that takes a site
// for itself: the lines of enabled_functions with the flag I (it moves the
// instruction pointer) or D (it is called directly), see t_show() in
// kernel/trace/ftrace.c.
func (c *causes) readPatched() map[string]string {
	f, err := os.Open(filepath.Join(c.root, "sys/kernel/tracing/enabled_functions"))
	if err != nil {
		return nil
	}
	defer f.Close()
	patched := make(map[string]string)
	for sc := bufio.NewScanner(f); sc.Scan(); {
		// name [module] (1) R I D   tramp: ... direct-->...
		name, how, ok := strings.Cut(sc.Text(), " (")
		fields := strings.Fields(how)
		if ok && (slices.Contains(fields, "I") || slices.Contains(fields, "D")) {
			patched[name] = "(" + strings.Join(fields, " ")
		}
	}
	return patched
}
