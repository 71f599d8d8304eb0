package kallscope_test

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
)

// TestPlanSharedCandidates: a candidate counts for every pattern that it fits.
func TestPlanSharedCandidates(t *testing.T) {
	k := live(t, small)
	for _, patterns := range [][]string{
		{"finish", "vmlinux:finish"}, {"jiffies", "vmlinux:jiffies"}, {"vfs_read", "vfs_*", "v*", "0xffffffff81000100"},
	} {
		p, err := k.Plan(query(patterns...), kallscope.PlanOptions{})
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.HasLen(p.Unmatched, 0), qt.Commentf("%q", patterns))
	}
}

func TestPlanOffsets(t *testing.T) {
	k := live(t, small)
	kprobe := kallscope.PlanOptions{Mechanism: kallscope.Kprobe}
	p, err := k.Plan(query("vfs_read+0x10", "__x64_sys_getppid+0"), kprobe)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(shape(p), []string{"+100 vfs_read", "+200 __x64_sys_getppid"}))
	qt.Assert(t, qt.Equals(p.Targets[0].Offset, 0x10))
	qt.Assert(t, qt.Equals(p.Targets[1].Offset, 0))
	qt.Assert(t, qt.Equals(p.Offset(p.Targets[0].Func), 0x10))
	for _, patterns := range [][]string{{"vfs_read+0x10", "vfs_read"}, {"vfs_read", "vfs_read+0x10"}, {"vfs_read+0x10", "0xffffffff81000100"}} {
		p, err = k.Plan(query(patterns...), kallscope.PlanOptions{})
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.DeepEquals(shape(p), []string{"+100 vfs_read"}), qt.Commentf("%q", patterns))
	}
	p, err = k.Plan(query("vfs_read+0xfffff"), kprobe)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(p.Matched(), 0))
	qt.Assert(t, qt.Matches(p.Unmatched[0].Why, `vfs_read ends at \+0x[0-9a-f]+ or before`))
}

func TestPlanExcludedAddress(t *testing.T) {
	p, err := live(t, small).Plan(query("vfs_r*", "!0xffffffff81000100"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(shape(p), 0))
	qt.Assert(t, qt.DeepEquals(p.Unmatched, []kallscope.Unmatched{{Pattern: "vfs_r*", Why: "all that match are excluded"}}))
}

func TestPlanDuplicateByAddress(t *testing.T) {
	k := live(t, small)
	p, err := k.Plan(query("type_show", "0xffffffff81000380"), kallscope.PlanOptions{Duplicates: kallscope.DuplicatesSkip})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(len(p.Targets), 1))
	qt.Assert(t, qt.Equals(p.Targets[0].Addr, 0xffffffff81000380))
}

// TestPlanNear: names that match nothing come with those that may be meant.
func TestPlanNear(t *testing.T) {
	k := live(t, small)
	for _, test := range []struct {
		name string
		want []string
	}{
		{"vfs_raed", []string{"vfs_read"}},
		{"sys_getpid", []string{"__x64_sys_getpid"}}, // its name before v4.17
		{"type_sho", []string{"type_show"}},
	} {
		p, err := k.Plan(query(test.name), kallscope.PlanOptions{})
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.DeepEquals(p.Unmatched, []kallscope.Unmatched{{Pattern: test.name, Near: test.want}}))
	}
}

// TestPlanLLVM: a name that clang's ThinLTO extended is not taken for the one
// that was typed; it is shown, and a glob finds it, in its module.
func TestPlanLLVM(t *testing.T) {
	llvm := small
	llvm.Kallsyms += "ffffffffc0003000 t ovl_create.llvm.1234\t[overlay]\n"
	llvm.Sites += "ffffffffc0003004 ovl_create.llvm.1234 [overlay]\n"
	p, err := live(t, llvm).Plan(query("ovl_create", "overlay:ovl_*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(shape(p), []string{"+3000 ovl_create.llvm.1234 [overlay]"}))
	qt.Assert(t, qt.DeepEquals(p.Unmatched, []kallscope.Unmatched{{Pattern: "ovl_create", Near: []string{"ovl_create.llvm.1234"}}}))
}

// TestPlanModuleBTF: BTF of a module that does not fit the kernel's is told, and
// the module's functions stay targets of mechanisms that do without.
func TestPlanModuleBTF(t *testing.T) {
	rebuilt := small
	rebuilt.Files = map[string]string{"sys/kernel/btf/fuse": "\xeb\x9f\x01\x00 built at another time"}
	p, err := live(t, rebuilt).Plan(query("fuse:*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(shape(p), []string{"+0 fuse_open [fuse]", "+40 type_show [fuse]"}))
	qt.Assert(t, qt.Matches(p.Facts.BTFUnknown, "BTF of fuse: .*"))

	e, err := live(t, rebuilt).Explain(query("fuse:fuse_open"))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(e.Findings, 1))
	qt.Assert(t, qt.HasLen(e.Findings[0].Verdict(kallscope.KprobeMulti).Obstacles, 0))
	o := e.Findings[0].Verdict(kallscope.Fentry).Obstacles
	qt.Assert(t, qt.HasLen(o, 1))
	qt.Assert(t, qt.Equals(o[0].Reason, kallscope.ReasonNoBTF))
	qt.Assert(t, qt.Matches(o[0].Detail, "BTF of fuse: .*"))
}
