package kallscope_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/testutil"
)

// small is a kernel with one of each oddity. Sites are 4 behind the entry where
// there is an endbr64.
var small = testutil.Kernel{
	Kallsyms: `0000000000001000 A fixed_percpu_data
ffffffff81000000 T _text
ffffffff810000f0 t __pfx_vfs_read
ffffffff81000100 T vfs_read
ffffffff81000200 T __do_sys_getppid
ffffffff81000200 T __x64_sys_getppid
ffffffff81000210 T __x64_sys_getpid
ffffffff81000300 t type_show
ffffffff81000340 t type_show
ffffffff81000380 t type_show
ffffffff81000400 t finish.isra.0
ffffffff81000480 t finish.isra.0.cold
ffffffff81000500 t __rcu_read_lock
ffffffff81000540 t split.part.0
ffffffff81000580 t whole.part.0
ffffffff81000600 T __noinstr_text_start
ffffffff81000610 t irq_enter
ffffffff81000700 T __noinstr_text_end
ffffffff81000710 t plain_notrace
ffffffff81000800 D jiffies
ffffffff81001000 T _sinittext
ffffffff81001010 t early_setup
ffffffff81002000 T _einittext
ffffffffc0000000 t fuse_open	[fuse]
ffffffffc0000040 t type_show	[fuse]
ffffffffc0001000 t gone_fn	[going]
ffffffffc0002000 t bpf_prog_6deef7357e7b4530_x	[bpf]
`,
	Sites: `ffffffff81000104 vfs_read
ffffffff81000200 __do_sys_getppid
ffffffff81000214 __x64_sys_getpid
ffffffff81000304 type_show
ffffffff81000384 type_show
ffffffff81000400 finish.isra.0
ffffffff81000500 __rcu_read_lock
ffffffff81000544 split.part.0
ffffffff81000720 __ftrace_invalid_address___16
ffffffffc0000004 fuse_open [fuse]
ffffffffc0000044 type_show [fuse]
ffffffffc0001000 gone_fn [going]
`,
	Modules: "fuse 1000 1 - Live 0xffffffffc0000000\ngoing 1000 0 - Unloading 0xffffffffc0001000\n",
	BTF: []*btf.Func{
		testutil.Fn("vfs_read", long, fileptr),
		testutil.Fn("type_show", long),
		testutil.Fn("finish", &btf.Void{}),
		testutil.Fn("discarded_exit", &btf.Void{}, fileptr),
	},
}

var (
	long    = &btf.Int{Name: "long", Size: 8, Encoding: btf.Signed}
	fileptr = &btf.Pointer{Target: &btf.Struct{Name: "file", Size: 8}}
)

func live(t *testing.T, k testutil.Kernel) *kallscope.Kernel {
	t.Helper()
	kernel, err := kallscope.Live(kallscope.LiveOptions{Root: k.Root(t)})
	qt.Assert(t, qt.IsNil(err))
	return kernel
}

func query(patterns ...string) kallscope.Query { return kallscope.Query{Patterns: patterns} }

// shape writes a plan as "+address name" and "-address name reason".
func shape(p *kallscope.Plan) []string {
	var lines []string
	for _, t := range p.Targets {
		lines = append(lines, fmt.Sprintf("+%x %s", t.Addr&0xfffff, t.Func))
	}
	for s := range p.Skipped.All() {
		lines = append(lines, fmt.Sprintf("-%x %s: %s", s.Addr&0xfffff, s.Func, s.Reason))
	}
	return lines
}

func TestPlan(t *testing.T) {
	k := live(t, small)
	for _, test := range []struct {
		name  string
		query kallscope.Query
		o     kallscope.PlanOptions
		want  []string
	}{
		{"entry not site", query("vfs_read"), kallscope.PlanOptions{}, []string{"+100 vfs_read"}},
		{"duplicates, one without site", query("vmlinux:type_show"), kallscope.PlanOptions{}, []string{
			"+300 type_show", "+380 type_show", "-340 type_show: no-site",
		}},
		{"duplicates in modules too", query("type_show"), kallscope.PlanOptions{}, []string{
			"+300 type_show", "+380 type_show", "+40 type_show [fuse]", "-340 type_show: no-site",
		}},
		{"duplicates first", query("type_show"), kallscope.PlanOptions{Duplicates: kallscope.DuplicatesFirst}, []string{
			"+300 type_show", "-340 type_show: no-site", "-380 type_show: duplicate", "-40 type_show [fuse]: duplicate",
		}},
		{"duplicates skip", query("vmlinux:type_show", "vfs_read"), kallscope.PlanOptions{Duplicates: kallscope.DuplicatesSkip}, []string{
			"+100 vfs_read", "-340 type_show: no-site", "-300 type_show: duplicate", "-380 type_show: duplicate",
		}},
		{"name that was asked for", query("syscall:getppid"), kallscope.PlanOptions{}, []string{"+200 __x64_sys_getppid"}},
		{"kernel's own name", query("*getppid"), kallscope.PlanOptions{}, []string{"+200 __do_sys_getppid"}},
		{"an excluded alias excludes", query("*getppid", "!__x64_*"), kallscope.PlanOptions{}, []string{"-200 __do_sys_getppid: excluded-alias"}},
		{"an excluded address", query("vfs_read", "!0xffffffff81000100"), kallscope.PlanOptions{}, nil},
		{"glob over suffixes", query("finish*"), kallscope.PlanOptions{}, []string{
			"+400 finish.isra.0", "-480 finish.isra.0.cold: cold", "-0 finish: suffixed",
		}},
		{"plain name of a clone", query("finish"), kallscope.PlanOptions{}, []string{"-0 finish: suffixed"}},
		{"BTF only", query("discarded_exit"), kallscope.PlanOptions{}, []string{"-0 discarded_exit: no-symbol"}},
		{"dispatch in patterns", query("__rcu_*"), kallscope.PlanOptions{}, []string{"-500 __rcu_read_lock: dispatch"}},
		{"dispatch by name", query("__rcu_read_lock"), kallscope.PlanOptions{}, []string{"+500 __rcu_read_lock"}},
		{"dispatch cautious", query("__rcu_*"), kallscope.PlanOptions{Cautious: true}, []string{"+500 __rcu_read_lock"}},
		{"part with and without site", query("*.part.0"), kallscope.PlanOptions{}, []string{"+540 split.part.0", "-580 whole.part.0: fragment"}},
		{"padding", query("*vfs_read"), kallscope.PlanOptions{}, []string{"+100 vfs_read", "-f0 __pfx_vfs_read: padding"}},
		{"why no site", query("irq_enter", "early_setup", "plain_notrace"), kallscope.PlanOptions{}, []string{
			"-610 irq_enter: noinstr", "-710 plain_notrace: no-site", "-1010 early_setup: init",
		}},
		{"data by name", query("jiffies"), kallscope.PlanOptions{}, []string{"-800 jiffies: data-symbol"}},
		{"data by glob", query("jiff*"), kallscope.PlanOptions{}, nil},
		{"module", query("fuse:*"), kallscope.PlanOptions{}, []string{"+0 fuse_open [fuse]", "+40 type_show [fuse]"}},
		{"module going", query("going:*"), kallscope.PlanOptions{}, []string{"-1000 gone_fn [going]: module-not-live"}},
		{"pseudo module", query("bpf_prog_*"), kallscope.PlanOptions{}, []string{"-2000 bpf_prog_6deef7357e7b4530_x [bpf]: pseudo-module"}},
		{"offset", query("vfs_read+0x10"), kallscope.PlanOptions{}, []string{"-100 vfs_read: offset"}},
		{"address", query("0xffffffff81000100"), kallscope.PlanOptions{}, []string{"+100 vfs_read"}},
		{"address of the site", query("0xffffffff81000104"), kallscope.PlanOptions{}, []string{"+100 vfs_read"}},
		{"address of one duplicate", query("0xffffffff81000380"), kallscope.PlanOptions{}, []string{"+380 type_show"}},
		{"module address", query("0xffffffffc0000000"), kallscope.PlanOptions{}, []string{"+0 fuse_open [fuse]"}},
		{"excluded address", query("vmlinux:type_show", "!0xffffffff81000380"), kallscope.PlanOptions{}, []string{"+300 type_show", "-340 type_show: no-site"}},
		{"only these modules", kallscope.Query{Patterns: []string{"type_show"}, Modules: []string{"fuse"}}, kallscope.PlanOptions{}, []string{"+40 type_show [fuse]"}},
		{"argument type", kallscope.Query{Args: []string{"struct file *"}}, kallscope.PlanOptions{}, []string{"+100 vfs_read", "-0 discarded_exit: no-symbol"}},
		{"result type", kallscope.Query{Patterns: []string{"vfs_*"}, Rets: []string{"long"}}, kallscope.PlanOptions{}, []string{"+100 vfs_read"}},
		{"number of arguments", kallscope.Query{NArgs: "1"}, kallscope.PlanOptions{}, []string{"+100 vfs_read", "-0 discarded_exit: no-symbol"}},
		{"range of arguments", kallscope.Query{Modules: []string{"vmlinux"}, NArgs: "0-"}, kallscope.PlanOptions{}, []string{
			"+100 vfs_read", "+300 type_show", "+380 type_show", "-340 type_show: no-site", "-0 finish: suffixed", "-0 discarded_exit: no-symbol",
		}},
		{"argument and number", kallscope.Query{Args: []string{"struct file *"}, NArgs: "2-3"}, kallscope.PlanOptions{}, nil},
		{"no such result", kallscope.Query{Patterns: []string{"vfs_*"}, Rets: []string{"int"}}, kallscope.PlanOptions{}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := k.Plan(test.query, test.o)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.DeepEquals(shape(p), test.want))
			qt.Assert(t, qt.Equals(p.Matched(), len(test.want)))
		})
	}
}

// TestPlanEverything: each address and each BTF function without one is in
// the plan for '*' exactly once.
func TestPlanEverything(t *testing.T) {
	k := live(t, small)
	p, err := k.Plan(query("*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	seen := make(map[string]int)
	var last uint64
	for f := range p.Funcs() {
		seen[fmt.Sprintf("%x/%d", f.Addr, f.BTFID)]++
		if f.Addr != 0 {
			qt.Assert(t, qt.IsTrue(f.Addr > last))
			last = f.Addr
		}
	}
	table, err := k.Symbols()
	qt.Assert(t, qt.IsNil(err))
	for _, s := range table.All() {
		if s.IsText() {
			qt.Assert(t, qt.Equals(seen[fmt.Sprintf("%x/0", s.Addr)], 1), qt.Commentf("%v", s))
		}
	}
	qt.Assert(t, qt.Equals(p.Skipped.By()[kallscope.ReasonSuffixed], 1))
	qt.Assert(t, qt.Equals(p.Skipped.By()[kallscope.ReasonNoSymbol], 1))
	qt.Assert(t, qt.Equals(p.Facts.Sites, 11))
}

// TestPlanTextByAddress: on some kernels variables have the letter T; what lies
// outside of the code is no function.
func TestPlanTextByAddress(t *testing.T) {
	k := small
	k.Kallsyms = strings.Replace(small.Kallsyms, "ffffffff81000800 D jiffies", "ffffffff81000790 T _etext\nffffffff81000800 T jiffies", 1)
	p, err := live(t, k).Plan(query("jiff*", "plain_notrace", "early_*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(shape(p), []string{"-710 plain_notrace: no-site", "-1010 early_setup: init"}))
	p, err = live(t, k).Plan(query("jiffies"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(shape(p), []string{"-800 jiffies: data-symbol"}))
}

func TestPlanByID(t *testing.T) {
	k := live(t, small)
	all, err := k.Plan(query("vfs_read"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	ids := k.BTFIDs(all.Targets[0].Func)
	qt.Assert(t, qt.HasLen(ids, 1))

	p, err := k.Plan(query(ids[0].String()), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(shape(p), []string{"+100 vfs_read"}))

	p, err = k.Plan(query("#5", "vfs_read"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(shape(p), []string{"+100 vfs_read"}))
	qt.Assert(t, qt.DeepEquals(p.Unmatched, []kallscope.Unmatched{{Pattern: "#5", Why: "type id 5 in the BTF of vmlinux is no function"}}))
	_, err = k.Plan(query("vfs_read", "!#5"), kallscope.PlanOptions{})
	qt.Assert(t, qt.ErrorMatches(err, `pattern !#5: type id 5 in the BTF of vmlinux is no function`))
}

func TestPlanUnmatched(t *testing.T) {
	k := live(t, small)
	p, err := k.Plan(query("nothing_*", "vfs_read", "vfs_r*", "vfs_read", "0xffffffff81000100", "0x10", "nosuch:*", "0xffffffff81000800", "0xffffffff81000150"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(p.Unmatched, []kallscope.Unmatched{
		{Pattern: "nothing_*"},
		{Pattern: "0x10", Why: "no function of vmlinux or a module is at this address"},
		{Pattern: "nosuch:*", Why: "module nosuch is not loaded; what is built in is in vmlinux"},
		{Pattern: "0xffffffff81000800", Why: "a data symbol is at this address: jiffies"},
		{Pattern: "0xffffffff81000150", Why: "this is vfs_read+0x50; the entry is 0xffffffff81000100"},
	}))
}

func TestPlanErrors(t *testing.T) {
	k := live(t, small)
	_, err := k.Plan(query("type_show"), kallscope.PlanOptions{Duplicates: kallscope.DuplicatesError})
	qt.Assert(t, qt.ErrorIs(err, kallscope.ErrAmbiguous))
	qt.Assert(t, qt.ErrorMatches(err, `type_show: 3 functions have this name: 0xffffffff81000300 \[vmlinux\].*`))
	for _, pattern := range []string{"tcp_[", "/(/", "#x", "", "a b"} {
		_, err := k.Plan(query(pattern), kallscope.PlanOptions{})
		qt.Assert(t, qt.ErrorMatches(err, `parse pattern.*column \d+.*`), qt.Commentf("%q", pattern))
	}
	_, err = k.Plan(kallscope.Query{Args: []string{"struct *"}}, kallscope.PlanOptions{})
	qt.Assert(t, qt.ErrorMatches(err, `type "struct \*".*`))
	for _, text := range []string{"x", "-1", "1-x", "1-2-3", "65536", "-"} {
		_, err = k.Plan(kallscope.Query{NArgs: text}, kallscope.PlanOptions{})
		qt.Check(t, qt.ErrorMatches(err, `number of arguments ".*": want a number such as "3".*`), qt.Commentf("%q", text))
	}
	_, err = k.Plan(kallscope.Query{NArgs: "3-2"}, kallscope.PlanOptions{})
	qt.Assert(t, qt.ErrorMatches(err, `number of arguments "3-2": the range is empty`))
}

// TestPlanSiteNames: kernels before 6.5 list names only. An ambiguous name is
// decided by the records around it where they decide it.
func TestPlanSiteNames(t *testing.T) {
	old := small
	old.Sites = ""
	old.SiteNames = "vfs_read\n__do_sys_getppid\n__x64_sys_getpid\ntype_show\ntype_show\nfinish.isra.0\n__ftrace_invalid_address___64\nfuse_open [fuse]\ntype_show [fuse]\n"
	p, err := live(t, old).Plan(query("type_show", "vfs_read", "fuse_open"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	// Two records for three symbols: which two is not known. In the module the
	// name is unique.
	qt.Assert(t, qt.DeepEquals(shape(p), []string{
		"+100 vfs_read", "+0 fuse_open [fuse]", "+40 type_show [fuse]",
		"-300 type_show: site-unknown", "-340 type_show: site-unknown", "-380 type_show: site-unknown",
	}))

	old.SiteNames = strings.Replace(old.SiteNames, "type_show\n", "type_show\ntype_show\n", 1)
	p, err = live(t, old).Plan(query("vmlinux:type_show"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(shape(p), []string{"+300 type_show", "+340 type_show", "+380 type_show"}))
}

// TestPlanHidden: without addresses names keep working, and what needs an
// address to be told apart says so.
func TestPlanHidden(t *testing.T) {
	hidden := small
	hidden.Kallsyms = zeroAddresses(small.Kallsyms)
	hidden.SiteNames = "vfs_read\n__do_sys_getppid\ntype_show\ntype_show\nfuse_open [fuse]\n"
	p, err := live(t, hidden).Plan(query("vfs_read", "vmlinux:type_show", "plain_*", "fuse_*", "__x64_sys_getppid"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(shape(p), []string{
		// The list has one name an address: who names another one has it tried.
		"+0 vfs_read", "+0 __x64_sys_getppid", "+0 fuse_open [fuse]",
		"-0 type_show: ambiguous-name", "-0 type_show: ambiguous-name", "-0 type_show: ambiguous-name", "-0 plain_notrace: site-unknown",
	}))
	qt.Assert(t, qt.Matches(p.Facts.Hidden, `kernel.kptr_restrict is 1, CAP_SYSLOG is .*`))
}

func zeroAddresses(kallsyms string) string {
	var b strings.Builder
	for line := range strings.Lines(kallsyms) {
		b.WriteString("0000000000000000" + line[16:])
	}
	return b.String()
}

// TestPlanMissingFacts: what cannot be read is said, and the rest works.
func TestPlanMissingFacts(t *testing.T) {
	bare := testutil.Kernel{Kallsyms: small.Kallsyms}
	p, err := live(t, bare).Plan(query("vfs_*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(shape(p), []string{"+100 vfs_read"}))
	qt.Assert(t, qt.Matches(p.Facts.SitesUnknown, "tracefs is not mounted.*"))
	qt.Assert(t, qt.Matches(p.Facts.BTFUnknown, ".*CONFIG_DEBUG_INFO_BTF"))

	p, err = live(t, bare).Plan(query("#7"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Matches(p.Unmatched[0].Why, "BTF of vmlinux: .*CONFIG_DEBUG_INFO_BTF"))
	_, err = live(t, bare).Plan(kallscope.Query{Args: []string{"int"}}, kallscope.PlanOptions{})
	qt.Assert(t, qt.ErrorMatches(err, "select by type: BTF of vmlinux: .*"))

	locked := bare
	locked.Lockdown = "none integrity [confidentiality]\n"
	p, err = live(t, locked).Plan(query("vfs_*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Matches(p.Facts.SitesUnknown, `restricted: kernel lockdown is "confidentiality".*`))

	locked.Lockdown = "none [integrity] confidentiality\n"
	p, err = live(t, locked).Plan(query("vfs_*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Matches(p.Facts.SitesUnknown, "tracefs is not mounted.*"))

	_, err = live(t, testutil.Kernel{}).Plan(query("vfs_*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.ErrorMatches(err, "kernel symbols: .*"))
	_, err = live(t, testutil.Kernel{Files: map[string]string{"proc/kallsyms": ""}}).Plan(query("vfs_*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.ErrorMatches(err, ".*kallsyms: input is empty.*CONFIG_KALLSYMS.*"))

	empty := bare
	empty.Files = map[string]string{"sys/kernel/tracing/trace": "", "sys/kernel/tracing/available_filter_functions_addrs": ""}
	p, err = live(t, empty).Plan(query("vfs_*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Matches(p.Facts.SitesUnknown, ".*is empty: ftrace is switched off.*"))
}

// TestPlanStopsAtModules: a query that no module can match does not read their
// part of the lists.
func TestPlanStopsAtModules(t *testing.T) {
	k := small
	k.Kallsyms += "this line would be an error\n"
	k.Sites += "this one too\n"
	p, err := live(t, k).Plan(query("vmlinux:vfs_*", "#1", "syscall:get*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(p.Facts.SitesUnknown, ""))
	_, err = live(t, k).Plan(query("vfs_*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.ErrorMatches(err, ".*line 28.*"))
}

func TestPlanJSON(t *testing.T) {
	p, err := live(t, small).Plan(query("*", "!fuse:*"), kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	var first, second bytes.Buffer
	qt.Assert(t, qt.IsNil(p.Encode(&first)))
	again, err := kallscope.DecodePlan(bytes.NewReader(first.Bytes()))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(again.Targets, p.Targets))
	qt.Assert(t, qt.DeepEquals(slices.Collect(again.Skipped.All()), slices.Collect(p.Skipped.All())))
	qt.Assert(t, qt.DeepEquals(again.Facts, p.Facts))
	qt.Assert(t, qt.IsNil(again.Encode(&second)))
	qt.Assert(t, qt.Equals(second.String(), first.String()))

	for _, bad := range []string{"", "{}", `{"schema":"kallscope.plan/9"}`, first.String() + "x", first.String()[:100], `{"schema":"kallscope.plan/1","targets":[{"mechanism":"no"}]}`, `{"schema":"kallscope.plan/1","targets":[{"name":"a","module":"vmlinux"}]}`, `{"schema":"kallscope.plan/1","targets":[{"name":"a","x":1,"mechanism":"kprobe.multi"}]}`} {
		_, err := kallscope.DecodePlan(strings.NewReader(bad))
		qt.Assert(t, qt.ErrorMatches(err, "decode plan: .*"), qt.Commentf("%.40q", bad))
	}
}

func FuzzDecodePlan(f *testing.F) {
	f.Add([]byte(`{"schema":"kallscope.plan/1","kernel":{"release":"6","arch":"amd64"},"query":{"patterns":["*"]},"targets":[{"address":"0xffff","module":"vmlinux","name":"a","mechanism":"kprobe.multi"}],"skipped":[{"module":"vmlinux","name":"b","btf_id":3,"reason":"no-symbol"}],"facts":{"symbols":1,"sites":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := kallscope.DecodePlan(bytes.NewReader(data))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := p.Encode(&out); err != nil {
			t.Fatal(err)
		}
		again, err := kallscope.DecodePlan(bytes.NewReader(out.Bytes()))
		if err != nil {
			t.Fatalf("%v: %s", err, out.Bytes())
		}
		var second bytes.Buffer
		if err := again.Encode(&second); err != nil || second.String() != out.String() {
			t.Fatalf("%s\n%s", out.String(), second.String())
		}
	})
}

func TestReasons(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range kallscope.Reasons() {
		info := r.Info()
		qt.Assert(t, qt.Not(qt.Equals(info.Code, "")), qt.Commentf("%d", r))
		qt.Assert(t, qt.Not(qt.Equals(info.Text, "")), qt.Commentf("%s", r))
		qt.Assert(t, qt.IsFalse(seen[info.Code]))
		seen[info.Code] = true
		back, err := kallscope.ParseReason(r.String())
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(back, r))
	}
	_, err := kallscope.ParseReason("nonsense")
	qt.Assert(t, qt.ErrorIs(err, kallscope.ErrNotFound))
	qt.Assert(t, qt.Equals(kallscope.Reason(200).String(), "reason-200"))
}

func TestNames(t *testing.T) {
	k := live(t, small)
	names, err := k.Names(kallscope.Func{Addr: 0xffffffff81000200, Module: kallscope.Vmlinux})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(names, []string{"__do_sys_getppid", "__x64_sys_getppid"}))
}

func TestIdentity(t *testing.T) {
	id := live(t, small).Identity()
	qt.Assert(t, qt.Equals(id.Release, "6.12.0-test"))
	qt.Assert(t, qt.Equals(id.BuildID, "cafebabe"))
	_, err := kallscope.Live(kallscope.LiveOptions{Root: t.TempDir()})
	qt.Assert(t, qt.ErrorMatches(err, "no running Linux kernel: .*"))
}

func TestSwitches(t *testing.T) {
	k := small
	k.Lockdown = "none [integrity] confidentiality\n"
	k.Files = map[string]string{
		"proc/self/status":                   "Name:\tx\nCapEff:\t0000000400000000\n",
		"sys/kernel/debug/kprobes/blacklist": "0xffffffff81000600-0xffffffff81000700\tirq_enter\n",
	}
	kernel := live(t, k)
	s := kernel.Switches()
	qt.Assert(t, qt.Equals(s.Lockdown, "integrity"))
	qt.Assert(t, qt.Equals(s.KptrRestrict, "1"))
	qt.Assert(t, qt.IsTrue(s.Syslog))
	qt.Assert(t, qt.Matches(s.Tracefs, ".*/sys/kernel/tracing"))
	list, err := kernel.KprobeBlacklist()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(list, []kallscope.CodeRange{{Start: 0xffffffff81000600, End: 0xffffffff81000700, Name: "irq_enter"}}))
	_, err = live(t, small).KprobeBlacklist()
	qt.Assert(t, qt.ErrorMatches(err, "kprobe blacklist: .*"))
}
