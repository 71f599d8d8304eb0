package kallscope_test

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/pattern"
	"github.com/kallscope/kallscope/internal/testutil"
)

func TestVariantOf(t *testing.T) {
	for name, want := range map[string]string{
		"finish.isra.0": "finish", "finish.constprop.0.isra.0": "finish", "finish.llvm.123": "finish", "finish.5": "finish",
		"finish": "", "finish.cold": "", "finish.isra.0.cold": "", "finish.part.0": "", "__pfx_finish.isra.0": "",
	} {
		qt.Check(t, qt.Equals(kallscope.Func{Name: name}.VariantOf(), want), qt.Commentf(name))
	}
}

// TestBaseIDs: the base name's id is shown where only one function can be meant.
func TestBaseIDs(t *testing.T) {
	void := &btf.Void{}
	kernel := testutil.Kernel{
		Kallsyms: `ffffffff81000000 T _text
ffffffff810000f0 t __pfx_alone.isra.0
ffffffff81000100 t alone.isra.0
ffffffff81000180 t alone.isra.0.cold
ffffffff81000200 t split.part.0
ffffffff81000280 t split.constprop.0
ffffffff81000300 t both
ffffffff81000380 t both.isra.0
ffffffff81000400 t two.isra.0
ffffffff81000480 t two.isra.0
ffffffff81000500 t twice.isra.0
ffffffff81000500 t twice.constprop.0
ffffffff81000600 t own.isra.0
ffffffff81000700 t none.isra.0
ffffffffc0000000 t both.isra.0	[fuse]
`,
		BTF: []*btf.Func{
			testutil.Fn("alone", void, fileptr), testutil.Fn("split", void), testutil.Fn("both", void), testutil.Fn("two", void),
			testutil.Fn("twice", void), testutil.Fn("own", void), testutil.Fn("own.isra.0", void),
		},
	}
	k := live(t, kernel)
	kernel.Kallsyms = zeroAddresses(kernel.Kallsyms)
	hidden := live(t, kernel)
	const base = 0xffffffff81000000
	for _, test := range []struct {
		name   string
		addr   uint64
		joined bool
		hidden bool // joined, with addresses hidden
	}{
		{"alone.isra.0", 0x100, true, true},
		{"split.constprop.0", 0x280, true, true},
		{"split.part.0", 0x200, false, false}, // no function of its own
		{"both.isra.0", 0x380, false, false},
		{"two.isra.0", 0x400, false, false},
		{"twice.isra.0", 0x500, true, false},
		{"own.isra.0", 0x600, false, false}, // has its own id
		{"none.isra.0", 0x700, false, false},
		{"both", 0x300, false, false},
	} {
		f := kallscope.Func{Addr: base + test.addr, Name: test.name, Module: kallscope.Vmlinux}
		var want []kallscope.BTFID
		if test.joined {
			want = k.BTFIDs(kallscope.Func{Name: f.VariantOf(), Module: kallscope.Vmlinux})
			qt.Assert(t, qt.HasLen(want, 1))
			qt.Check(t, qt.HasLen(k.BTFIDs(f), 0))
		}
		qt.Check(t, qt.DeepEquals(k.BaseIDs(f), want), qt.Commentf(test.name))
		f.Addr = 0
		qt.Check(t, qt.Equals(len(hidden.BaseIDs(f)) == 1, test.hidden), qt.Commentf("%s, hidden", test.name))
	}
	// The id of vmlinux says nothing about a function of a module.
	qt.Check(t, qt.HasLen(k.BaseIDs(kallscope.Func{Addr: 0xffffffffc0000000, Name: "both.isra.0", Module: "fuse"}), 0))
}

func TestPrototype(t *testing.T) {
	k := live(t, small)
	ids := k.BTFIDs(kallscope.Func{Name: "vfs_read", Module: kallscope.Vmlinux})
	prototype, err := k.Prototype(ids[0])
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(prototype, "long vfs_read(struct file *arg)"))
	_, err = k.Prototype(kallscope.BTFID{Object: kallscope.Vmlinux, ID: 1 << 20})
	qt.Check(t, qt.ErrorIs(err, kallscope.ErrNotFound))
	_, err = k.Prototype(kallscope.BTFID{Object: "fuse", ID: 1})
	qt.Check(t, qt.ErrorMatches(err, "BTF of fuse: .*"))
}

// TestExplainVariants: who asks for either name is told of the other.
func TestExplainVariants(t *testing.T) {
	e, err := live(t, small).Explain(query("finish*"))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(e.Findings, 3))
	made, base := e.Findings[0], e.Findings[2]
	qt.Check(t, qt.Equals(made.Name, "finish.isra.0"))
	qt.Check(t, qt.HasLen(made.IDs, 0))
	qt.Check(t, qt.DeepEquals(made.BaseIDs, base.IDs))
	qt.Check(t, qt.Equals(made.Prototype, "void finish(void)"))
	qt.Check(t, qt.DeepEquals(base.Verdicts[0].Obstacles, []kallscope.Obstacle{{Reason: kallscope.ReasonSuffixed, Detail: "finish.isra.0"}}))
}

func TestPlanVariants(t *testing.T) {
	with := small
	with.Kallsyms = strings.Replace(with.Kallsyms, "ffffffff81000500", "ffffffff810004a0 t finish.llvm.77\nffffffff81000500", 1)
	with.Sites = strings.Replace(with.Sites, "ffffffff81000500", "ffffffff810004a4 finish.llvm.77\nffffffff81000500", 1)
	k := live(t, with)
	for _, test := range []struct {
		name  string
		query kallscope.Query
		want  []string
	}{
		{"name", query("finish"), []string{"+400 finish.isra.0", "+4a0 finish.llvm.77"}},
		{"glob", query("f?nish"), []string{"+400 finish.isra.0", "+4a0 finish.llvm.77"}},
		{"module", query("vmlinux:finish"), []string{"+400 finish.isra.0", "+4a0 finish.llvm.77"}},
		{"another module", query("fuse:finish"), nil},
		{"full name", query("finish.isra.0"), []string{"+400 finish.isra.0"}},
		{"regular expression", query("/^finish$/"), []string{"-0 finish: suffixed"}},
		{"offset", query("finish+0x4"), []string{"-0 finish: suffixed"}},
		{"exclusion by base name", query("finish*", "!finish"), []string{"-480 finish.isra.0.cold: cold"}},
		{"exclusion by full name", query("finish", "!finish.llvm.*"), []string{"+400 finish.isra.0"}},
		{"exclusion by expression", query("finish", "!/llvm/"), []string{"+400 finish.isra.0"}},
		{"fragments are no variants", query("split", "whole"), nil},
		{"types are those of the name itself", kallscope.Query{Patterns: []string{"finish"}, Rets: []string{"void"}}, []string{"-0 finish: suffixed"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.query.Variants = true
			p, err := k.Plan(test.query, kallscope.PlanOptions{})
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.DeepEquals(shape(p), test.want))
		})
	}
	p, err := k.Plan(kallscope.Query{Patterns: []string{"fin*", "finish", "vmlinux:finish"}, Variants: true}, kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(p.Unmatched, 0), qt.Commentf("a variant counts for every pattern that stands for it"))
	id := k.BTFIDs(kallscope.Func{Name: "finish", Module: kallscope.Vmlinux})[0].String()
	p, err = k.Plan(kallscope.Query{Patterns: []string{id}, Variants: true}, kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(shape(p), []string{"+400 finish.isra.0", "+4a0 finish.llvm.77"}))
	p, err = k.Plan(query(id), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(shape(p), []string{"-0 finish: suffixed"}), qt.Commentf("never without being asked"))
}

// TestVariantsByName compares the functions of plans with those that one
// pattern after the other finds.
func TestVariantsByName(t *testing.T) {
	k, err := kallscope.Open("testdata/snapshots/7.3.ksnap")
	qt.Assert(t, qt.IsNil(err))
	table, err := k.Symbols()
	qt.Assert(t, qt.IsNil(err))
	everything, err := k.Plan(query("*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	for _, patterns := range [][]string{
		{"*_switch"}, {"ksys_*ctl", "!ksys_shmctl"}, {"tcp_ao_*", "!*_hash"}, {"*.isra.0", "vmlinux:[a-f]*h", "!/^e/"}, {"/_exit$/", "*_lookup", "nf_conntrack:*exp"},
	} {
		p, err := k.Plan(kallscope.Query{Patterns: patterns, Variants: true}, kallscope.PlanOptions{})
		qt.Assert(t, qt.IsNil(err))
		got := make(map[string]bool)
		for f := range p.Funcs() {
			if f.Addr != 0 {
				got[f.String()] = true
			}
		}
		var parsed []pattern.Pattern
		for _, text := range patterns {
			one, err := pattern.Parse(text)
			qt.Assert(t, qt.IsNil(err))
			parsed = append(parsed, one)
		}
		variants := 0
		for f := range everything.Funcs() {
			include, exclude := false, false
			for _, one := range parsed {
				is := one.Match(f.Module, f.Name) || one.Kind == pattern.Glob && f.VariantOf() != "" && one.Match(f.Module, f.VariantOf())
				include, exclude = include || is && !one.Exclude, exclude || is && one.Exclude
			}
			if f.Addr == 0 || len(table.At(f.Addr)) > 1 {
				continue
			}
			if include && !exclude && f.VariantOf() != "" {
				variants++
			}
			qt.Check(t, qt.Equals(got[f.String()], include && !exclude), qt.Commentf("%q: %s", patterns, f))
		}
		qt.Check(t, qt.IsTrue(variants > 0), qt.Commentf("%q", patterns))
	}
}
