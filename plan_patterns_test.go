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
