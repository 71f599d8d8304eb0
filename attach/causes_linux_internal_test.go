package attach

import (
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/bpf"
	"github.com/kallscope/kallscope/internal/feature"
	"github.com/kallscope/kallscope/internal/testutil"
)

// machine is what the errors of the case are explained with.
var machine = testutil.Kernel{
	Kallsyms: `ffffffff81000100 T vfs_read
ffffffff81000300 t seq_demo
ffffffff81000400 t seq_demo
ffffffff81000500 t finish.isra.0
ffffffff81000600 t in_entry
ffffffff81000700 t plain_notrace
`,
	BTF: []*btf.Func{testutil.Fn("vfs_read", &btf.Void{})},
	Files: map[string]string{
		"sys/kernel/debug/kprobes/blacklist":             "0xffffffff81000600-0xffffffff81000680\t.entry.text\n",
		"proc/self/status":                               "CapEff:\t000001ffffffffff\n",
		"proc/self/limits":                               "Limit  Soft Limit  Hard Limit  Units\nMax locked memory         8388608              8388608              bytes\n",
		"sys/kernel/tracing/enabled_functions":           "vfs_write (1) R   \ttramp: 0x1\nvfs_read (1)     D   \tdirect-->other_trampoline+0x0/0x10\n",
		"sys/kernel/livepatch/fix_it/vmlinux/seq_demo,1": "",
	},
}

func causesOf(t *testing.T, k testutil.Kernel) *causes {
	t.Helper()
	root := k.Root(t)
	kernel, err := kallscope.Live(kallscope.LiveOptions{Root: root})
	qt.Assert(t, qt.IsNil(err))
	return newCauses(root, kernel)
}

func target(name string, addr uint64) *kallscope.Target {
	return &kallscope.Target{Func: kallscope.Func{Name: name, Module: kallscope.Vmlinux, Addr: addr}}
}

// with returns the machine with other files.
func with(files map[string]string) testutil.Kernel {
	k := machine
	k.Files = maps.Clone(machine.Files)
	maps.Copy(k.Files, files)
	return k
}

const onlyPerfmon = "CapEff:\t000000c000000000\n" // CAP_BPF and CAP_PERFMON

// TestCaseErrnoExplain: each row of errno_explain.csv is an error of the kernel;
// the text that this package makes of it must hold every idea of the row, and
// the number's name.
func TestCaseErrnoExplain(t *testing.T) {
	c := causesOf(t, machine)
	vfsRead := target("vfs_read", 0xffffffff81000100)
	multi, single := &kprobeMulti{}, &kprobe{causes: c}
	fentry, all := &tracing{causes: c}, &tracingMulti{causes: c}
	load := func(errno unix.Errno, log string) error {
		return fentry.refusal(vfsRead, &loadError{&bpf.VerifierError{Errno: errno, Log: log}})
	}
	probed := func(m kallscope.Mechanism, root string, err ...error) error {
		return supported(m, root, fmt.Errorf("%w: %w", err[0], err[1]))
	}
	rows := map[string]struct {
		errs []error
		want []string
	}{
		"kprobe_multi attach,EOPNOTSUPP(95),kernel 6.18 config FPROBE=n": {
			[]error{probed(kallscope.KprobeMulti, "/", feature.ErrNotBuilt, unix.EOPNOTSUPP)},
			[]string{"built without CONFIG_FPROBE", "!5.18"},
		},
		// Cannot be: attach sets the type that it loads a program with.
		"kprobe_multi attach,EINVAL(22),prog loaded with expected_attach_type 47": {},
		"kprobe_multi attach by name,ESRCH(3),one of 900 names absent or listed twice": {
			[]error{multi.refusal(target("nosuch", 0), unix.ESRCH)}, []string{"named nosuch", "twice"},
		},
		"kprobe_multi attach by addr,EINVAL/ENOENT,address not an ftrace site": {
			[]error{multi.refusal(vfsRead, unix.EINVAL), multi.refusal(vfsRead, unix.ENOENT)},
			[]string{"0xffffffff81000100", "vfs_read", "no ftrace site"},
		},
		"kprobe_multi attach,E2BIG(7),more than 1048576 targets": {
			[]error{outOf(unix.E2BIG, 1_100_000)}, []string{"1100000 targets", "1048576"},
		},
		"kprobe attach,EADDRNOTAVAIL(99),name not unique": {
			[]error{single.refusal(target("seq_demo", 0), unix.EADDRNOTAVAIL)},
			[]string{"0xffffffff81000300", "0xffffffff81000400", "use MODULE:seq_demo or an address"},
		},
		"kprobe attach,ENOENT(2),name absent or kprobe with '.' on 4.18": {
			[]error{single.refusal(target("finish", 0), unix.ENOENT)}, []string{"no function named finish, only finish.isra.0"},
		},
		"kprobe attach,EINVAL(22),symbol is notrace/blacklisted/inside entry text": {
			[]error{single.refusal(target("in_entry", 0xffffffff81000600), unix.EINVAL)}, []string{"in the kprobe blacklist", ".entry.text"},
		},
		"kprobe attach,EPERM(1),lockdown=confidentiality": {
			[]error{probed(kallscope.Kprobe, "/", feature.ErrLockdown, unix.EPERM)}, []string{`lockdown is "confidentiality"`},
		},
		"fentry load,EPERM(1),root with full BPF caps on 6.18": {
			[]error{denied(c.root, &loadError{unix.EPERM}), probed(kallscope.Fentry, c.root, feature.ErrPermission, unix.EPERM)},
			[]string{"!(?i)memlock", "security module", "rules of a container"},
		},
		"fentry attach,ENOTSUPP(524),arm64 before 6.4 (no ftrace direct calls)": {
			[]error{fentry.refusal(vfsRead, bpf.ErrNotSupp)}, []string{"no direct calls", "arm64 before 6.4"},
		},
		"fentry load,EINVAL + 'arg1 type STRUCT is unsupported',struct by value": {
			[]error{load(unix.EINVAL, "The function vfs_read arg1 type STRUCT is unsupported.\nprocessed 0 insns")},
			[]string{"arg1 type STRUCT", "arg0 is the first one"},
		},
		"fexit load,EINVAL,do_exit on 6.15+": {
			[]error{load(unix.EINVAL, "Attaching fexit/fsession/fmod_ret to __noreturn function 'do_exit' is rejected.\nprocessed 0 insns")},
			[]string{"do_exit", "never returns"},
		},
		"fentry attach,E2BIG(7),39th program on one function": {
			[]error{fentry.refusal(vfsRead, unix.E2BIG), all.refusal(vfsRead, unix.E2BIG)}, []string{"all 38 places of this function's trampoline"},
		},
		"fentry attach,EBUSY(16),function livepatched or has freplace/other direct call": {
			[]error{fentry.refusal(vfsRead, unix.EBUSY), all.refusal(vfsRead, unix.EBUSY)}, []string{"live patch", `other_trampoline\+0x0`},
		},
		"perf_event_open,EACCES(13),Debian/Ubuntu perf_event_paranoid 3 or 4 with CAP_PERFMON": {
			[]error{probed(kallscope.Kprobe, "/", feature.ErrParanoid, unix.EACCES)},
			[]string{"perf_event_paranoid does not permit it", "it is " + feature.Sysctl("perf_event_paranoid"), "Debian and Ubuntu ask for CAP_SYS_ADMIN"},
		},
		"any open,EMFILE(24),ulimit -n 1024": {
			[]error{outOf(unix.EMFILE, 1), tooManyFiles(2000, 1024)}, []string{`\d+ (are )?allowed`, `(two|\d+) file descriptors`},
		},
		"map create,EPERM(1),kernel < 5.11 memlock": {
			[]error{denied(old(t), unix.EPERM)}, []string{"RLIMIT_MEMLOCK, 8388608 bytes"},
		},
		// Goes on: see TestCharged of internal/bpf.
		"setrlimit,EPERM(1),no CAP_SYS_RESOURCE": {},
	}
	for _, row := range readRows(t) {
		key := strings.Join(row[:3], ",")
		want, ok := rows[key]
		qt.Assert(t, qt.IsTrue(ok), qt.Commentf("no test of %s", key))
		delete(rows, key)
		for _, err := range want.errs {
			holds(t, err, row[1], want.want)
		}
	}
	qt.Assert(t, qt.HasLen(slices.Collect(maps.Keys(rows)), 0))
}

func readRows(t *testing.T) [][]string {
	t.Helper()
	f, err := os.Open("testdata/cases/errno_explain.csv")
	qt.Assert(t, qt.IsNil(err))
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(len(rows) > 1))
	return rows[1:]
}

// old is a machine that charges BPF to RLIMIT_MEMLOCK.
func old(t *testing.T) string {
	k := machine
	k.BTF = append(slices.Clone(k.BTF), testutil.Fn("__bpf_prog_charge", &btf.Void{}))
	return k.Root(t)
}

// holds checks an error's text, for the ideas that it must have, those with "!"
// that it must not, and the name of a number, which must be one of the row's.
func holds(t *testing.T, err error, numbers string, ideas []string) {
	t.Helper()
	name := errnoName.FindString(err.Error())
	qt.Check(t, qt.Not(qt.Equals(name, "")), qt.Commentf("%v", err))
	qt.Check(t, qt.StringContains(numbers, name))
	for _, idea := range ideas {
		if not, ok := strings.CutPrefix(idea, "!"); ok {
			qt.Check(t, qt.Not(qt.Matches(err.Error(), "(?s).*"+not+".*")))
			continue
		}
		qt.Check(t, qt.Matches(err.Error(), "(?s).*"+idea+".*"))
	}
}

var errnoName = regexp.MustCompile(`\bE[A-Z0-9]{3,}\b`)

// TestCauses has what the case leaves out.
func TestCauses(t *testing.T) {
	c := causesOf(t, machine)
	single := &kprobe{causes: c}
	noList := &kprobe{causes: causesOf(t, testutil.Kernel{Kallsyms: machine.Kallsyms})}
	for _, test := range []struct {
		err  error
		want string
	}{
		{single.refusal(target("plain_notrace", 0xffffffff81000700), unix.EINVAL), "EINVAL .*: it is notrace, or its instruction cannot be probed; .*"},
		{noList.refusal(target("plain_notrace", 0xffffffff81000700), unix.EINVAL), "EINVAL .*: it is notrace, or in the kprobe blacklist, which cannot be read: .*"},
		{single.refusal(target("vfs_read", 0), unix.EILSEQ), "EILSEQ .*: no instruction begins at offset 0x0"},
		{single.refusal(target("vfs_read", 0), unix.EOPNOTSUPP), "EOPNOTSUPP .*: this instruction can be neither .*"},
		{(&tracingMulti{causes: c}).refusal(target("vfs_read", 0), unix.ENOENT), "ENOENT .*: the kernel finds no ftrace site .*"},
		{single.refusal(target("finish.isra.1", 0), unix.ENOENT), "ENOENT .*: no function named finish.isra.1, or an old kernel .*"},
		{single.refusal(target("nothing", 0), unix.ENOENT), "ENOENT .*: no function named nothing"},
		{(&tracing{causes: c}).refusal(target("seq_demo", 0xffffffff81000300), unix.EBUSY), "EBUSY .*: live patch fix_it"},
		{(&tracing{causes: c}).refusal(target("finish.isra.0", 0xffffffff81000500), unix.EBUSY), "EBUSY .*: who is not to be seen .*"},
		{(&tracing{causes: noList.causes}).refusal(target("vfs_read", 0xffffffff81000100), unix.EBUSY), "EBUSY .*: who is not to be seen .*"},
		{denied(with(map[string]string{"proc/self/status": onlyPerfmon}).Root(t), unix.EPERM), "operation not permitted .EPERM.: this process has CAP_BPF and CAP_PERFMON: .*"},
		{denied(with(map[string]string{"proc/self/status": "CapEff:\t0000000000000000\n"}).Root(t), unix.EPERM), "operation not permitted .EPERM.: run as root, or with CAP_BPF and CAP_PERFMON"},
		{denied("/", unix.EINVAL), "invalid argument"},
	} {
		qt.Check(t, qt.ErrorMatches(test.err, test.want))
	}
}

// TestTracingMultiBlames: one function whose trampoline is full does not fail
// the others.
func TestTracingMultiBlames(t *testing.T) {
	qt.Assert(t, qt.IsTrue((&tracingMulti{}).blames(unix.E2BIG)))
	qt.Assert(t, qt.IsFalse((&tracingMulti{}).blames(unix.ENOMEM)))
	qt.Assert(t, qt.IsFalse((&kprobe{}).blames(unix.EACCES)))
}
