package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/testutil"
)

// TestCut: what is kept answers as before, with the ids of the whole.
func TestCut(t *testing.T) {
	file := &btf.Struct{Name: "file", Size: 232, Members: []btf.Member{{Name: "inode", Type: &btf.Pointer{Target: &btf.Struct{Name: "inode", Size: 600}}}}}
	long := &btf.Int{Name: "long", Size: 8, Encoding: btf.Signed}
	whole, err := kallscope.Live(kallscope.LiveOptions{Root: testutil.Kernel{
		Kallsyms: "ffffffff81000000 T _text\nffffffff81000100 T other\nffffffff81000200 T vfs_read\nffffffff81000200 T alias\nffffffff81000300 t vfs_none\nffffffff81000400 T _etext\nffffffffc0000000 t fuse_open\t[fuse]\nffffffffc0000100 t fuse_none\t[fuse]\n",
		Sites:    "ffffffff81000100 other\nffffffff81000204 vfs_read\nffffffffc0000000 fuse_open [fuse]\nffffffffc0000100 fuse_none [fuse]\n",
		BTF: []*btf.Func{
			testutil.Fn("other", long, &btf.Pointer{Target: &btf.Struct{Name: "unused", Size: 8}}),
			testutil.Fn("vfs_read", long, &btf.Pointer{Target: &btf.Const{Type: file}}, &btf.Array{Type: long, Index: long, Nelems: 2}),
			testutil.Fn("vfs_gone", long),
		},
		Files: map[string]string{"sys/kernel/debug/kprobes/blacklist": "0xffffffff81000100-0xffffffff81000110\tother\n0xffffffff81000200-0xffffffff81000210\tvfs_read\n"},
	}.Root(t)})
	qt.Assert(t, qt.IsNil(err))
	s, err := whole.Snapshot(nil)
	qt.Assert(t, qt.IsNil(err))
	in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
	qt.Assert(t, qt.IsNil(s.WriteFile(in)))
	qt.Assert(t, qt.IsNil(run([]string{in, out, "vfs_*", "fuse:*open"})))
	cut, err := kallscope.Open(out)
	qt.Assert(t, qt.IsNil(err))

	for _, q := range []kallscope.Query{
		{Patterns: []string{"vfs_*", "fuse_open"}},
		{Patterns: []string{"vfs_*"}, Args: []string{"const struct file *"}, Rets: []string{"long"}},
		{Patterns: []string{"alias"}},
	} {
		got, err := cut.Plan(q, kallscope.PlanOptions{})
		qt.Assert(t, qt.IsNil(err))
		want, err := whole.Plan(q, kallscope.PlanOptions{})
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.DeepEquals(got.Targets, want.Targets))
		qt.Assert(t, qt.DeepEquals(slices.Collect(got.Skipped.All()), slices.Collect(want.Skipped.All())))
		qt.Assert(t, qt.IsTrue(got.Matched() > 0))
		for f := range want.Funcs() {
			qt.Assert(t, qt.DeepEquals(cut.BTFIDs(f), whole.BTFIDs(f)))
		}
	}
	all, err := cut.Plan(kallscope.Query{Patterns: []string{"*"}}, kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	var names []string
	for f := range all.Funcs() {
		names = append(names, f.Name)
	}
	qt.Assert(t, qt.DeepEquals(names, []string{"_text", "vfs_read", "vfs_none", "fuse_open", "vfs_gone"}))
	list, err := cut.KprobeBlacklist()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(list, 1))

	qt.Assert(t, qt.ErrorMatches(run(nil), "usage: .*"))
	qt.Assert(t, qt.ErrorMatches(run([]string{in, out, "["}), "parse pattern.*"))
	qt.Assert(t, qt.ErrorMatches(run([]string{t.TempDir(), out, "*"}), ".*is a directory"))
}
