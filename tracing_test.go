package kallscope_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/testutil"
)

// TestTracingID: an id is found only where the kernel's own look-up of its name
// ends at the function.
func TestTracingID(t *testing.T) {
	void := &btf.Void{}
	with := testutil.Kernel{
		Kallsyms: `ffffffff81000000 T _text
ffffffff81000100 T vfs_read
ffffffff81000200 T __do_sys_getppid
ffffffff81000200 T __x64_sys_getppid
ffffffff81000300 t type_show
ffffffff81000340 t type_show
ffffffff81000400 t finish.isra.0
ffffffff81000500 d jiffies_show
ffffffff81000600 t jiffies_show
ffffffffc0000000 t type_show	[fuse]
`,
		BTF: []*btf.Func{
			testutil.Fn("vfs_read", void), testutil.Fn("__x64_sys_getppid", void), testutil.Fn("type_show", void),
			testutil.Fn("finish", void), testutil.Fn("jiffies_show", void), testutil.Fn("gone", void),
		},
	}
	visible := live(t, with)
	with.Kallsyms = regexp.MustCompile("(?m)^[0-9a-f]{16}").ReplaceAllString(with.Kallsyms, "0000000000000000")
	hidden := live(t, with)

	const base = 0xffffffff81000000
	for _, test := range []struct {
		k    *kallscope.Kernel
		name string
		addr uint64
		as   string // the name of the id
		want error
	}{
		{visible, "vfs_read", base + 0x100, "vfs_read", nil},
		{visible, "__do_sys_getppid", base + 0x200, "__x64_sys_getppid", nil}, // by another name of its address
		{visible, "type_show", base + 0x300, "type_show", nil},
		{visible, "type_show", base + 0x340, "", kallscope.ErrAmbiguous},
		{visible, "jiffies_show", base + 0x600, "", kallscope.ErrAmbiguous}, // data comes first
		{visible, "finish.isra.0", base + 0x400, "", kallscope.ErrNotFound},
		{visible, "gone", 0, "", kallscope.ErrNotFound},
		{visible, "vfs_read", base + 0x108, "", kallscope.ErrNotFound},
		{hidden, "vfs_read", 0, "vfs_read", nil},
		{hidden, "type_show", 0, "", kallscope.ErrAmbiguous},
	} {
		f := kallscope.Func{Name: test.name, Addr: test.addr, Module: kallscope.Vmlinux}
		id, err := test.k.TracingID(f)
		if test.want != nil {
			qt.Check(t, qt.ErrorIs(err, test.want), qt.Commentf("%s at %#x", test.name, test.addr))
			continue
		}
		qt.Assert(t, qt.IsNil(err), qt.Commentf("%s at %#x", test.name, test.addr))
		named := test.k.BTFIDs(kallscope.Func{Name: test.as, Module: kallscope.Vmlinux})
		qt.Check(t, qt.DeepEquals([]kallscope.BTFID{id}, named))
	}

	_, err := live(t, testutil.Kernel{Kallsyms: small.Kallsyms}).TracingID(kallscope.Func{Name: "vfs_read", Module: kallscope.Vmlinux})
	qt.Assert(t, qt.ErrorMatches(err, "BTF of vmlinux: .*CONFIG_DEBUG_INFO_BTF"))
}

func TestMechanisms(t *testing.T) {
	all := kallscope.Mechanisms()
	qt.Assert(t, qt.HasLen(all, 11))
	for _, m := range all {
		parsed, err := kallscope.ParseMechanism(m.String())
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(parsed, m))
		qt.Check(t, qt.Equals(m.ByBTF(), m.String()[0] == 'f'))
		qt.Check(t, qt.Equals(m.PerFunction(), !strings.Contains(m.String(), ".")))
	}
	qt.Assert(t, qt.Equals(kallscope.Hangs(kallscope.Kprobe, kallscope.Func{Name: "__rcu_read_lock", Module: kallscope.Vmlinux}), ""))
	qt.Assert(t, qt.Not(qt.Equals(kallscope.Hangs(kallscope.Fentry, kallscope.Func{Name: "__rcu_read_lock", Module: kallscope.Vmlinux}), "")))
}
