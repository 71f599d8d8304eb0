package attach_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/attach"
	"github.com/kallscope/kallscope/internal/testutil"
)

// cookieProgram adds one to hits[cookie]: a program of a user of the library.
func cookieProgram(t *testing.T, targets int) (attach.Programs, *ebpf.Map) {
	t.Helper()
	hits, err := ebpf.NewMap(&ebpf.MapSpec{Name: "hits", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: uint32(targets) + 1})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { hits.Close() })
	count := asm.Instructions{
		asm.FnGetAttachCookie.Call().WithSymbol("count"),
		asm.StoreMem(asm.RFP, -4, asm.R0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, 0).WithReference("hits"),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "exit"),
		asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
		asm.Return(),
	}
	spec := &ebpf.ProgramSpec{Name: "cookie", Type: ebpf.Kprobe, License: "GPL", Instructions: count}
	session := &ebpf.ProgramSpec{Name: "session", Type: ebpf.Kprobe, License: "GPL", Instructions: slices.Concat(asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoKfuncCall, Constant: -1}.WithReference("bpf_session_is_return"),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.JEq.Imm(asm.R0, 0, "count"),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return(),
	}, count)}
	return attach.Programs{Entry: spec, Return: spec, Session: session, Maps: map[string]*ebpf.Map{"hits": hits}}, hits
}

// kernelsWith are those of the test kernels that have a mechanism.
var kernelsWith = map[kallscope.Mechanism][]string{
	kallscope.KprobeMulti:    {"6.12", "7.3"},
	kallscope.KretprobeMulti: {"6.12", "7.3"},
	kallscope.KprobeSession:  {"6.12", "7.3"},
	kallscope.Fentry:         {"5.10", "6.1", "6.12", "7.3"},
	kallscope.Fexit:          {"5.10", "6.1", "6.12", "7.3"},
	kallscope.Fsession:       {"7.3"},
	kallscope.FentryMulti:    {"7.3"},
	kallscope.FexitMulti:     {"7.3"},
	kallscope.FsessionMulti:  {"7.3"},
	kallscope.Kprobe:         {"5.10", "6.1", "6.12", "7.3"},
	kallscope.Kretprobe:      {"5.10", "6.1", "6.12", "7.3"},
}

func plan(t *testing.T, m kallscope.Mechanism, patterns ...string) *kallscope.Plan {
	t.Helper()
	testutil.Guest(t)
	if err := attach.Supported(m); err != nil {
		testutil.NotOn(t, err, kernelsWith[m]...)
		t.Skip(err)
	}
	k, err := kallscope.Live(kallscope.LiveOptions{})
	qt.Assert(t, qt.IsNil(err))
	p, err := k.Plan(kallscope.Query{Patterns: patterns}, kallscope.PlanOptions{Mechanism: m})
	qt.Assert(t, qt.IsNil(err))
	return p
}

func getppid(n int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range n {
		unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
	}
}

// enabledFunctions returns what ftrace has patched.
func enabledFunctions(t *testing.T) string {
	t.Helper()
	list, err := os.ReadFile("/sys/kernel/tracing/enabled_functions")
	qt.Assert(t, qt.IsNil(err))
	return string(list)
}

func TestGuestAttach(t *testing.T) {
	for _, m := range []kallscope.Mechanism{kallscope.KprobeMulti, kallscope.KretprobeMulti} {
		t.Run(m.String(), func(t *testing.T) {
			p := plan(t, m, "syscall:get*")
			before := enabledFunctions(t)
			programs, hits := cookieProgram(t, len(p.Targets))
			started := false
			att, err := attach.Attach(context.Background(), programs, p, attach.Options{Start: func() error {
				started = true
				return nil
			}})
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.IsTrue(started))
			qt.Assert(t, qt.Equals(att.Attached(), len(p.Targets)))
			qt.Assert(t, qt.HasLen(att.Links(), 1))

			getppid(1234)
			qt.Assert(t, qt.Equals(hit(t, hits, index(p, "__x64_sys_getppid")+1), 1234))
			qt.Assert(t, qt.Equals(hit(t, hits, 0), 0)) // a site instead of an entry has no cookie
			missed, err := att.Missed()
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(missed.Link, 0))

			qt.Assert(t, qt.IsNil(att.Close()))
			qt.Assert(t, qt.IsNil(att.Close()))
			qt.Assert(t, qt.Equals(enabledFunctions(t), before))
		})
	}
}

func index(p *kallscope.Plan, name string) int {
	return slices.IndexFunc(p.Targets, func(t kallscope.Target) bool { return t.Name == name })
}

func hit(t *testing.T, hits *ebpf.Map, cookie int) uint64 {
	t.Helper()
	var n uint64
	qt.Assert(t, qt.IsNil(hits.Lookup(uint32(cookie), &n)))
	return n
}

// TestGuestRefused plants bad addresses: just those are refused, and all else is
// attached by few links. With KALLSCOPE_LONG it has all functions.
func TestGuestRefused(t *testing.T) {
	pattern := "vmlinux:/^[s-t]/"
	if os.Getenv("KALLSCOPE_LONG") != "" {
		pattern = "vmlinux:*"
	}
	p := plan(t, kallscope.KprobeMulti, pattern)
	r := rand.New(rand.NewPCG(1, 2))
	bad := r.Perm(len(p.Targets))[:25]
	slices.Sort(bad)
	for _, i := range bad {
		p.Targets[i].Addr += 12 // behind the site, in front of the next entry
	}
	programs, hits := cookieProgram(t, len(p.Targets))
	att, err := attach.Attach(context.Background(), programs, p, attach.Options{})
	qt.Assert(t, qt.IsNil(err))
	defer att.Close()
	var got []int
	for _, refused := range att.Refused() {
		got = append(got, refused.Index)
		qt.Assert(t, qt.Equals(refused.Reason, kallscope.ReasonRefused))
		qt.Assert(t, qt.IsTrue(errors.Is(refused.Err, unix.EINVAL) || errors.Is(refused.Err, unix.ENOENT)), qt.Commentf("%v", refused.Err))
		qt.Assert(t, qt.Equals(refused.Target, p.Targets[refused.Index]))
	}
	qt.Assert(t, qt.DeepEquals(got, bad))
	qt.Assert(t, qt.Equals(att.Attached()+len(bad), len(p.Targets)))
	qt.Assert(t, qt.IsTrue(len(att.Links()) <= 2))
	fmt.Printf("%d targets, %d bad: %d calls\n", len(p.Targets), len(bad), att.Calls())
	qt.Assert(t, qt.IsTrue(att.Calls() <= 450))
	qt.Assert(t, qt.IsTrue(hit(t, hits, 0) == 0))
}

func TestGuestStrict(t *testing.T) {
	p := plan(t, kallscope.KprobeMulti, "syscall:get*")
	before := enabledFunctions(t)
	p.Targets[3].Addr += 12
	programs, _ := cookieProgram(t, len(p.Targets))
	_, err := attach.Attach(context.Background(), programs, p, attach.Options{Strict: true})
	var refused *attach.Refused
	qt.Assert(t, qt.ErrorAs(err, &refused))
	qt.Assert(t, qt.Equals(refused.Index, 3))
	qt.Assert(t, qt.Equals(enabledFunctions(t), before))
}

// TestGuestMaxCalls: a search that would take too long says what it left out.
func TestGuestMaxCalls(t *testing.T) {
	p := plan(t, kallscope.KprobeMulti, "syscall:get*")
	for i := range p.Targets {
		p.Targets[i].Addr += 12
	}
	programs, _ := cookieProgram(t, len(p.Targets))
	att, err := attach.Attach(context.Background(), programs, p, attach.Options{MaxCalls: 5})
	qt.Assert(t, qt.IsNil(err))
	defer att.Close()
	qt.Assert(t, qt.Equals(att.Attached(), 0))
	qt.Assert(t, qt.HasLen(att.Refused(), len(p.Targets)))
	qt.Assert(t, qt.Equals(att.Refused()[len(p.Targets)-1].Reason, kallscope.ReasonNotTried))
}

func TestGuestErrors(t *testing.T) {
	p := plan(t, kallscope.KprobeMulti, "syscall:getppid")
	programs, _ := cookieProgram(t, 1)
	ctx := context.Background()

	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err := attach.Attach(canceled, programs, p, attach.Options{})
	qt.Assert(t, qt.ErrorIs(err, context.Canceled))

	_, err = attach.Attach(ctx, programs, p, attach.Options{Start: func() error { return errors.New("no") }})
	qt.Assert(t, qt.ErrorMatches(err, "attach: start: no"))

	_, err = attach.Attach(ctx, attach.Programs{}, p, attach.Options{})
	qt.Assert(t, qt.ErrorMatches(err, `attach: kprobe.multi: .*set Programs.Entry.*`))

	_, err = attach.Attach(ctx, attach.Programs{Entry: programs.Entry}, p, attach.Options{})
	qt.Assert(t, qt.ErrorMatches(err, `.*it refers to map "hits", which is not among the maps`))

	other := *p
	other.Kernel.BuildID = "00"
	_, err = attach.Attach(ctx, programs, &other, attach.Options{})
	qt.Assert(t, qt.ErrorIs(err, kallscope.ErrOtherKernel))

	twice := *p
	twice.Targets = append(twice.Targets, twice.Targets[0])
	_, err = attach.Attach(ctx, programs, &twice, attach.Options{})
	qt.Assert(t, qt.ErrorMatches(err, "attach: targets 0 and 1 have one address, .*"))

	auto := *p
	auto.Targets = []kallscope.Target{{Func: p.Targets[0].Func}}
	_, err = attach.Attach(ctx, programs, &auto, attach.Options{})
	qt.Assert(t, qt.ErrorMatches(err, "attach: target 0, .*: mechanism auto is none to attach by"))

	none := *p
	none.Targets = nil
	_, err = attach.Attach(ctx, programs, &none, attach.Options{})
	qt.Assert(t, qt.ErrorIs(err, attach.ErrNoTargets))
}

// TestGuestByName: where addresses are hidden the kernel looks the names up.
func TestGuestByName(t *testing.T) {
	plan(t, kallscope.KprobeMulti, "syscall:getppid") // skips
	testutil.Sysctl(t, "kernel.kptr_restrict", "2")
	p := plan(t, kallscope.KprobeMulti, "__do_sys_get*", "type_show")
	qt.Assert(t, qt.Matches(p.Facts.Hidden, "kernel.kptr_restrict is 2, CAP_SYSLOG is present"))
	i := index(p, "__do_sys_getppid")
	qt.Assert(t, qt.Equals(p.Targets[i].Addr, 0))
	qt.Assert(t, qt.Not(qt.Equals(p.Skipped.By()[kallscope.ReasonAmbiguousName], 0)))

	programs, hits := cookieProgram(t, len(p.Targets))
	att, err := attach.Attach(context.Background(), programs, p, attach.Options{})
	qt.Assert(t, qt.IsNil(err))
	defer att.Close()
	qt.Assert(t, qt.Equals(att.Attached(), len(p.Targets)))
	getppid(55)
	qt.Assert(t, qt.Equals(hit(t, hits, i+1), 55))
}

// TestGuestEntries: functions that begin with an endbr64 are told apart. By
// their sites, 4 behind the entry, all would have the cookie 0.
func TestGuestEntries(t *testing.T) {
	p := plan(t, kallscope.KprobeMulti, "syscall:getppid", "syscall:pread64", "vfs_read")
	list, err := os.ReadFile("/sys/kernel/tracing/available_filter_functions_addrs")
	qt.Assert(t, qt.IsNil(err))
	behind := 0
	for _, target := range p.Targets {
		if strings.Contains(string(list), fmt.Sprintf("%x ", target.Addr+4)) {
			behind++
		}
	}
	if behind == 0 {
		testutil.NotOn(t, errors.New("no site is behind its entry"), "6.12", "7.3")
	}
	programs, hits := cookieProgram(t, len(p.Targets))
	att, err := attach.Attach(context.Background(), programs, p, attach.Options{})
	qt.Assert(t, qt.IsNil(err))
	defer att.Close()
	getppid(70)
	f, err := os.Open("/proc/self/exe")
	qt.Assert(t, qt.IsNil(err))
	defer f.Close()
	b := make([]byte, 1)
	for range 30 {
		_, err := unix.Pread(int(f.Fd()), b, 0)
		qt.Assert(t, qt.IsNil(err))
	}
	qt.Assert(t, qt.Equals(hit(t, hits, index(p, "__x64_sys_getppid")+1), 70))
	qt.Assert(t, qt.Equals(hit(t, hits, index(p, "__x64_sys_pread64")+1), 30))
	qt.Assert(t, qt.Equals(hit(t, hits, 0), 0))
}

// TestGuestNotSupported: a kernel without the mechanism says which of the two
// it is: built without it, or older.
func TestGuestNotSupported(t *testing.T) {
	testutil.Guest(t)
	err := attach.Supported(kallscope.KprobeMulti)
	switch testutil.Release(t) {
	case "5.10":
		qt.Assert(t, qt.ErrorMatches(err, ".*it is older than this mechanism.*"))
	case "6.1":
		qt.Assert(t, qt.ErrorMatches(err, ".*it was built without CONFIG_FPROBE .EOPNOTSUPP."))
	default:
		qt.Assert(t, qt.IsNil(err))
		return
	}
	qt.Assert(t, qt.ErrorIs(err, kallscope.ErrNotSupported))
}
