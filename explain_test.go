package kallscope_test

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/testutil"
)

func explainOne(t *testing.T, k testutil.Kernel, name string) kallscope.Finding {
	t.Helper()
	e, err := live(t, k).Explain(query(name))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(e.Findings, 1))
	return e.Findings[0]
}

// TestExplainSuffixed: who asks for a name that the compiler extended is told
// the full one.
func TestExplainSuffixed(t *testing.T) {
	f := explainOne(t, small, "finish")
	for _, v := range f.Verdicts {
		qt.Check(t, qt.DeepEquals(v.Obstacles, []kallscope.Obstacle{{Reason: kallscope.ReasonSuffixed, Detail: "finish.isra.0"}}))
	}
}

// TestExplainPrototypes: each id of a name has its own prototype, and those are
// told apart where they differ.
func TestExplainPrototypes(t *testing.T) {
	k := small
	f := explainOne(t, k, "vfs_read")
	qt.Assert(t, qt.Equals(f.Prototype, "long vfs_read(struct file *arg)"))
	qt.Assert(t, qt.IsNil(f.Prototypes))

	k.BTF = append(slices.Clone(small.BTF), testutil.Fn("vfs_read", &btf.Void{}))
	f = explainOne(t, k, "vfs_read")
	qt.Assert(t, qt.HasLen(f.IDs, 2))
	qt.Assert(t, qt.DeepEquals(f.Prototypes, []string{"long vfs_read(struct file *arg)", "void vfs_read(void)"}))

	k.BTF[len(k.BTF)-1] = testutil.Fn("vfs_read", long, fileptr)
	f = explainOne(t, k, "vfs_read")
	qt.Assert(t, qt.HasLen(f.IDs, 2))
	qt.Assert(t, qt.IsNil(f.Prototypes))
}
