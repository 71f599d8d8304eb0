package count

import (
	"runtime"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/attach"
	"github.com/kallscope/kallscope/internal/testutil"
)

// TestGuestTargetFound: the program finds its target by the table alone, by the
// cookie alone, and counts under 0 what it cannot tell.
func TestGuestTargetFound(t *testing.T) {
	testutil.Guest(t)
	if err := attach.Supported(kallscope.KprobeMulti); err != nil {
		testutil.NotOn(t, err, "6.12", "7.3")
		t.Skip(err)
	}
	for _, test := range []struct {
		name           string
		patterns       []string
		cookies, known bool
	}{
		{"table", []string{"tcp_*", "syscall:getppid"}, false, true},
		{"table and cookie", []string{"tcp_*", "syscall:getppid"}, true, true},
		{"cookie", []string{"syscall:getppid"}, true, true},
		{"neither", []string{"syscall:getppid"}, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := plan(t, test.patterns...)
			c, err := New(p, Options{})
			qt.Assert(t, qt.IsNil(err))
			defer c.Close()
			var o link.KprobeMultiOptions
			getppid := -1
			for i, target := range p.Targets {
				o.Addresses = append(o.Addresses, uintptr(target.Addr))
				if test.cookies {
					o.Cookies = append(o.Cookies, uint64(i)+1)
				}
				if target.Name == "__x64_sys_getppid" {
					getppid = i
				}
			}
			l, err := link.KprobeMulti(load(t, c), o)
			qt.Assert(t, qt.IsNil(err))
			defer l.Close()

			call(1000) // before the start: not counted
			qt.Assert(t, qt.IsNil(c.Start()))
			call(2000)
			qt.Assert(t, qt.IsNil(c.Stop()))
			call(4000) // behind the end: not counted
			calls, unknown := c.Counts(nil)[getppid], c.Unknown()
			if !test.known {
				calls, unknown = unknown, calls
			}
			qt.Assert(t, qt.Equals(calls, 2000))
			qt.Assert(t, qt.Equals(unknown, 0))
		})
	}
}

func plan(t *testing.T, patterns ...string) *kallscope.Plan {
	t.Helper()
	k, err := kallscope.Live(kallscope.LiveOptions{})
	qt.Assert(t, qt.IsNil(err))
	p, err := k.Plan(kallscope.Query{Patterns: patterns}, kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	return p
}

func load(t *testing.T, c *Counter) *ebpf.Program {
	t.Helper()
	spec := c.Programs().Entry.Copy()
	for i := range spec.Instructions {
		if ins := &spec.Instructions[i]; ins.IsLoadFromMap() {
			qt.Assert(t, qt.IsNil(ins.AssociateMap(c.Programs().Maps[ins.Reference()])))
		}
	}
	prog, err := ebpf.NewProgram(spec)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { prog.Close() })
	return prog
}

func call(n int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range n {
		unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
	}
}
