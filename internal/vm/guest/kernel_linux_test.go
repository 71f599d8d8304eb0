package guest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope/internal/vm/wire"
)

// fakeKernel records what it was asked, and refuses what it was told to.
type fakeKernel struct {
	calls  []string
	refuse map[string]error
}

func (k *fakeKernel) call(format string, args ...any) error {
	c := fmt.Sprintf(format, args...)
	k.calls = append(k.calls, c)
	return k.refuse[c]
}

func (k *fakeKernel) mkdir(string) error                   { return nil }
func (k *fakeKernel) mount(m mountPoint) error             { return k.call("mount %s", m.target) }
func (k *fakeKernel) loadModule(p string) error            { return k.call("load %s", p) }
func (k *fakeKernel) writeFile(p, s string) error          { return k.call("write %s %s", p, s) }
func (k *fakeKernel) linkUp(name string) error             { return k.call("up %s", name) }
func (k *fakeKernel) setRlimit(r int, _ unix.Rlimit) error { return k.call("limit %d", r) }

func TestMountAll(t *testing.T) {
	k := &fakeKernel{refuse: map[string]error{"mount /sys/kernel/security": unix.ENODEV}}
	qt.Assert(t, qt.IsNil(mountAll(k, nil)))
	qt.Assert(t, qt.HasLen(k.calls, len(mounts)))
	qt.Assert(t, qt.Equals(k.calls[0], "mount /proc"))
}

func TestMountAllWithout(t *testing.T) {
	k := &fakeKernel{}
	qt.Assert(t, qt.IsNil(mountAll(k, []string{"tracefs", "bpf"})))
	qt.Assert(t, qt.HasLen(k.calls, len(mounts)-3))
	for _, c := range k.calls {
		// debugfs would mount tracefs.
		qt.Check(t, qt.IsFalse(strings.Contains(c, "trac") || strings.Contains(c, "debug") || strings.Contains(c, "bpf")))
	}
}

func TestMountAllErrors(t *testing.T) {
	err := mountAll(&fakeKernel{}, []string{"procfs"})
	qt.Assert(t, qt.ErrorMatches(err, `leave out mount "procfs": no such mount, .*`))
	err = mountAll(&fakeKernel{}, []string{"proc"})
	qt.Assert(t, qt.ErrorMatches(err, `leave out mount "proc": .*one that init needs`))
	for _, refused := range []error{unix.ENODEV, unix.EPERM} {
		err = mountAll(&fakeKernel{refuse: map[string]error{"mount /proc": refused}}, nil)
		qt.Assert(t, qt.IsTrue(errors.Is(err, refused)))
	}
}

func TestLoadAll(t *testing.T) {
	k := &fakeKernel{refuse: map[string]error{"load b": unix.EEXIST, "load c": unix.ENOENT}}
	qt.Assert(t, qt.IsNil(loadAll(k, []string{"a", "b", "d"})))
	qt.Assert(t, qt.DeepEquals(k.calls, []string{"load a", "load b", "load d"}))
	err := loadAll(k, []string{"c", "d"})
	qt.Assert(t, qt.ErrorMatches(err, "load module c: no such file or directory .*"))
	qt.Assert(t, qt.IsFalse(slices.Contains(k.calls[3:], "load d")))
}

func TestLoadSome(t *testing.T) {
	var b bytes.Buffer
	k := &fakeKernel{refuse: map[string]error{"load b": unix.ENODEV}}
	loadSome(k, &line{Writer: wire.NewWriter(&b)}, []string{"a", "b", "c"})
	qt.Assert(t, qt.HasLen(k.calls, 3))
	qt.Assert(t, qt.StringContains(b.String(), "load module b: no such device"))
	qt.Assert(t, qt.StringContains(b.String(), "loaded 2 modules, 1 refused"))
}

func TestSysctls(t *testing.T) {
	k := &fakeKernel{}
	qt.Assert(t, qt.IsNil(setSysctls(k, map[string]string{"kernel.kptr_restrict": "2"})))
	qt.Assert(t, qt.DeepEquals(k.calls, []string{
		"write /proc/sys/kernel/panic_on_oops 1",
		"write /proc/sys/kernel/kptr_restrict 2",
	}))
}

func TestInputOrder(t *testing.T) {
	in := newInput()
	in.put([]byte("ab"))
	in.put([]byte("c"))
	qt.Assert(t, qt.Equals(string(in.take()), "abc"))
	in.put([]byte("d"))
	in.end()
	qt.Assert(t, qt.Equals(string(in.take()), "d"))
	qt.Assert(t, qt.HasLen(in.take(), 0))
}

func TestActive(t *testing.T) {
	t.Setenv(wire.Marker, "1")
	qt.Assert(t, qt.Equals(Active(), os.Getpid() == 1))
}
