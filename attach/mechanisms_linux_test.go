package attach_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/attach"
	"github.com/kallscope/kallscope/internal/testutil"
)

// manyArguments is ENOTSUPP, for functions of more than six arguments before
// v6.6 (473e3150e30a). 5.10 takes no structures by value either.
const manyArguments = unix.Errno(524)

// nowhere is the address of no function.
const nowhere = 0xffffffff00001234

// TestGuestMechanisms attaches some functions by each mechanism that the kernel
// has: the one that is none is refused alone, calls are counted exactly for the
// function that was called, and nothing is left behind.
func TestGuestMechanisms(t *testing.T) {
	testutil.Guest(t)
	for _, m := range kallscope.Mechanisms() {
		t.Run(m.String(), func(t *testing.T) {
			p := plan(t, m, "tcp_*", "syscall:getppid")
			k := attachable(t, p)
			getppidAt := index(p, "__x64_sys_getppid")
			first := max(0, getppidAt-50)
			p.Targets, getppidAt = p.Targets[first:first+100], getppidAt-first
			bad := getppidAt + 7
			p.Targets[bad].Addr = nowhere
			before := enabledFunctions(t)

			programs, hits := cookieProgram(t, len(p.Targets))
			began := time.Now()
			att, err := attach.Attach(context.Background(), programs, p, attach.Options{Kernel: k})
			qt.Assert(t, qt.IsNil(err))
			attached := time.Since(began)
			defer att.Close()
			refusedBad := false
			for _, r := range att.Refused() {
				fmt.Printf("%s: %s refused: %v\n", m, r.Target, r.Err)
				if r.Index == bad {
					refusedBad = true
					continue
				}
				qt.Check(t, qt.IsTrue(m.ByBTF() && (errors.Is(r.Err, manyArguments) || strings.Contains(r.Err.Error(), "type STRUCT is unsupported"))), qt.Commentf("%v", r.Err))
			}
			qt.Assert(t, qt.IsTrue(refusedBad))
			qt.Assert(t, qt.Equals(att.Attached(), len(p.Targets)-len(att.Refused())))

			getppid(10_000)
			qt.Assert(t, qt.Equals(hit(t, hits, getppidAt+1), 10_000))
			qt.Assert(t, qt.Equals(hit(t, hits, 0), 0))
			_, err = att.Missed()
			qt.Assert(t, qt.IsNil(err))

			began = time.Now()
			qt.Assert(t, qt.IsNil(att.Close()))
			fmt.Printf("%s: %d attached in %v, detached in %v\n", m, att.Attached(), attached, time.Since(began))
			wantFunctions(t, before)
			getppid(1000)
			qt.Assert(t, qt.Equals(hit(t, hits, getppidAt+1), 10_000))
		})
	}
}

// attachable leaves out what has no BTF id, and returns the kernel.
func attachable(t *testing.T, p *kallscope.Plan) *kallscope.Kernel {
	t.Helper()
	k, err := kallscope.Live(kallscope.LiveOptions{})
	qt.Assert(t, qt.IsNil(err))
	if !p.Targets[0].Mechanism.ByBTF() {
		return k
	}
	p.Targets = slices.DeleteFunc(p.Targets, func(target kallscope.Target) bool {
		_, err := k.TracingID(target.Func)
		return err != nil
	})
	return k
}

// wantFunctions waits until ftrace has patched just these: images are freed
// behind a grace period.
func wantFunctions(t *testing.T, want string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for enabledFunctions(t) != want && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
	qt.Assert(t, qt.Equals(enabledFunctions(t), want))
}

// TestGuestFirstHit: by BTF the kernel takes the first symbol of a name. Any
// other function of that name is refused, not attached to the wrong one, also
// where a plan does not leave it out.
func TestGuestFirstHit(t *testing.T) {
	p := plan(t, kallscope.Fentry, "vmlinux:*_show", "syscall:getppid")
	for s := range p.Skipped.All() {
		if s.Reason == kallscope.ReasonAmbiguousName {
			p.Targets = append(p.Targets, kallscope.Target{Func: s.Func, Mechanism: kallscope.Fentry})
		}
	}
	k, err := kallscope.Live(kallscope.LiveOptions{})
	qt.Assert(t, qt.IsNil(err))
	byName := make(map[string][]kallscope.Target)
	for _, target := range p.Targets {
		if len(k.BTFIDs(target.Func)) > 0 {
			byName[target.Name] = append(byName[target.Name], target)
		}
	}
	p.Targets = nil
	for _, twins := range byName {
		if len(twins) > 1 && len(p.Targets) < 8 {
			p.Targets = append(p.Targets, twins[:2]...)
		}
	}
	if len(p.Targets) == 0 {
		testutil.NotOn(t, fmt.Errorf("no name is there twice"), "6.1", "6.12")
		t.Skip("no BTF name is there twice")
	}
	programs, _ := cookieProgram(t, len(p.Targets))
	att, err := attach.Attach(context.Background(), programs, p, attach.Options{Kernel: k})
	qt.Assert(t, qt.IsNil(err))
	defer att.Close()
	qt.Assert(t, qt.Not(qt.HasLen(att.Refused(), 0)))
	for _, r := range att.Refused() {
		fmt.Printf("%#x %s refused: %s: %v\n", r.Target.Addr, r.Target, r.Reason, r.Err)
	}
}

// TestGuestOffsets: a kprobe runs behind the entry as well.
func TestGuestOffsets(t *testing.T) {
	p := plan(t, kallscope.Kprobe, "syscall:getppid")
	size := len(p.Targets)
	for offset := uint32(1); offset < 24; offset++ {
		p.Targets = append(p.Targets, p.Targets[0])
		p.Targets[len(p.Targets)-1].Offset = offset
	}
	programs, hits := cookieProgram(t, len(p.Targets))
	att, err := attach.Attach(context.Background(), programs, p, attach.Options{})
	qt.Assert(t, qt.IsNil(err))
	defer att.Close()
	for _, r := range att.Refused() {
		fmt.Printf("+%d refused: %v\n", r.Target.Offset, r.Err)
	}
	qt.Assert(t, qt.IsTrue(att.Attached() > size), qt.Commentf("no offset was taken"))
	qt.Assert(t, qt.IsTrue(len(att.Refused()) > 0), qt.Commentf("offsets inside an instruction were taken"))
	getppid(100)
	refused := make(map[int]bool)
	for _, r := range att.Refused() {
		refused[r.Index] = true
	}
	for i := range p.Targets {
		want := uint64(100)
		if refused[i] {
			want = 0
		}
		qt.Check(t, qt.Equals(hit(t, hits, i+1), want), qt.Commentf("offset %d", p.Targets[i].Offset))
	}
}

// TestGuestSeveral: one plan holds several mechanisms, of one function and of
// functions of a module.
func TestGuestSeveral(t *testing.T) {
	p := plan(t, kallscope.Fentry, "syscall:getppid")
	p.Targets = p.Targets[:1]
	for _, m := range kallscope.Mechanisms() {
		if m != kallscope.Fentry && attach.Supported(m) == nil {
			p.Targets = append(p.Targets, kallscope.Target{Func: p.Targets[0].Func, Mechanism: m})
		}
	}
	ofVmlinux := len(p.Targets)
	for _, m := range []kallscope.Mechanism{kallscope.Fentry, kallscope.FentryMulti} {
		if attach.Supported(m) == nil && testutil.Release(t) != "5.10" { // that has no BTF of modules
			of := plan(t, m, "nf_conntrack:nf_ct_expect_*")
			attachable(t, of)
			p.Targets = append(p.Targets, of.Targets...)
		}
	}
	fmt.Printf("%d targets in vmlinux, %d in a module\n", ofVmlinux, len(p.Targets)-ofVmlinux)
	before := enabledFunctions(t)
	programs, hits := cookieProgram(t, len(p.Targets))
	att, err := attach.Attach(context.Background(), programs, p, attach.Options{Strict: true})
	qt.Assert(t, qt.IsNil(err))
	defer att.Close()
	qt.Assert(t, qt.Equals(att.Attached(), len(p.Targets)))
	getppid(500)
	for i, target := range p.Targets[:ofVmlinux] {
		qt.Check(t, qt.Equals(hit(t, hits, i+1), 500), qt.Commentf("%s", target.Mechanism))
	}
	qt.Assert(t, qt.IsNil(att.Close()))
	wantFunctions(t, before)
}

// TestGuestBadProgram: what is wrong with a program is not blamed on the
// functions.
func TestGuestBadProgram(t *testing.T) {
	for _, m := range []kallscope.Mechanism{kallscope.Fentry, kallscope.FentryMulti, kallscope.Kprobe} {
		t.Run(m.String(), func(t *testing.T) {
			p := plan(t, m, "syscall:getp*")
			attachable(t, p)
			bad := &ebpf.ProgramSpec{Name: "bad", Type: ebpf.Kprobe, License: "GPL", Instructions: asm.Instructions{asm.Return()}}
			_, err := attach.Attach(context.Background(), attach.Programs{Entry: bad}, p, attach.Options{})
			qt.Assert(t, qt.ErrorMatches(err, `attach: .*: load program.*permission denied.*`))
		})
	}
}

// TestGuestFiles: what takes more file descriptors than allowed says so before
// it begins, and the soft limit is raised only meanwhile.
func TestGuestFiles(t *testing.T) {
	p := plan(t, kallscope.Kprobe, "tcp_v4_*")
	programs, _ := cookieProgram(t, len(p.Targets))
	var old unix.Rlimit
	qt.Assert(t, qt.IsNil(unix.Getrlimit(unix.RLIMIT_NOFILE, &old)))
	defer func() { qt.Check(t, qt.IsNil(unix.Setrlimit(unix.RLIMIT_NOFILE, &old))) }()

	few := unix.Rlimit{Cur: 24, Max: old.Max}
	qt.Assert(t, qt.IsNil(unix.Setrlimit(unix.RLIMIT_NOFILE, &few)))
	att, err := attach.Attach(context.Background(), programs, p, attach.Options{})
	qt.Assert(t, qt.IsNil(err))
	var now unix.Rlimit
	qt.Assert(t, qt.IsNil(unix.Getrlimit(unix.RLIMIT_NOFILE, &now)))
	qt.Assert(t, qt.Equals(now, few))
	qt.Assert(t, qt.IsNil(att.Close()))

	few.Max = 24
	qt.Assert(t, qt.IsNil(unix.Setrlimit(unix.RLIMIT_NOFILE, &few)))
	_, err = attach.Attach(context.Background(), programs, p, attach.Options{})
	qt.Assert(t, qt.ErrorIs(err, unix.EMFILE))
	qt.Assert(t, qt.ErrorMatches(err, `attach: .* file descriptors are needed and 24 allowed; .*`))
}

// TestGuestHangs: what is known to stop the machine is refused by default.
func TestGuestHangs(t *testing.T) {
	p := plan(t, kallscope.Kprobe, "syscall:getppid")
	p.Targets = append(p.Targets[:1], kallscope.Target{
		Func: kallscope.Func{Name: "rcu_read_unlock_special", Module: kallscope.Vmlinux, Addr: nowhere}, Mechanism: kallscope.Fentry,
	})
	programs, _ := cookieProgram(t, len(p.Targets))
	att, err := attach.Attach(context.Background(), programs, p, attach.Options{})
	qt.Assert(t, qt.IsNil(err))
	defer att.Close()
	qt.Assert(t, qt.HasLen(att.Refused(), 1))
	qt.Assert(t, qt.ErrorMatches(att.Refused()[0].Err, "not tried: .*the guest stops on 7.3.4"))
}

// TestGuestCanceled: who cancels half-way finds nothing attached.
func TestGuestCanceled(t *testing.T) {
	p := plan(t, kallscope.Kprobe, "tcp_v4_*")
	before := enabledFunctions(t)
	programs, _ := cookieProgram(t, len(p.Targets))
	ctx, cancel := context.WithCancel(context.Background())
	_, err := attach.Attach(ctx, programs, p, attach.Options{Progress: func(now attach.Progress) {
		if now.Phase == attach.PhaseAttach && now.Done == 5 {
			cancel()
		}
	}})
	qt.Assert(t, qt.ErrorIs(err, context.Canceled))
	wantFunctions(t, before)
}
