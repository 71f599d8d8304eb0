package main

import (
	"context"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/attach"
	"github.com/kallscope/kallscope/internal/testutil"
)

// TestGuestLockdown comes last, by the name of its file: lockdown cannot be
// taken back.
func TestGuestLockdown(t *testing.T) {
	needKprobeMulti(t)
	const path = "/sys/kernel/security/lockdown"
	if err := os.WriteFile(path, []byte("integrity"), 0o600); err != nil {
		testutil.NotOn(t, err, "6.12", "7.3", "6.1", "5.10")
		t.Skip(err)
	}
	r := countCalls(t, "getppid:100", "syscall:getppid", "--command-only")
	qt.Assert(t, qt.Equals(r.summary.Calls, 100))

	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte("confidentiality"), 0o600)))
	_, speech, status := tool("list", "vfs_rea*")
	qt.Assert(t, qt.Equals(status, exitDone))
	qt.Assert(t, qt.StringContains(speech, "which functions can be traced is not known: "))
	qt.Assert(t, qt.StringContains(speech, `kernel lockdown is "confidentiality"`))
	r = countCalls(t, "getppid:100", "syscall:getppid", "--command-only")
	qt.Assert(t, qt.Equals(r.summary.Calls, 100))
	err := attach.Supported(kallscope.Kprobe)
	qt.Assert(t, qt.ErrorIs(err, kallscope.ErrRestricted))
	qt.Assert(t, qt.ErrorMatches(err, `kprobe: restricted: kernel lockdown is "confidentiality" .EPERM.; use another mechanism`))
	r = countBy(t, "getppid:100", "syscall:getppid", "--command-only", "--mechanism", "fentry")
	qt.Assert(t, qt.Equals(r.summary.Calls, 100))
	testReadsMemory(t)
}

// testReadsMemory: a program that reads kernel memory is refused with the cause.
func testReadsMemory(t *testing.T) {
	t.Helper()
	spec := &ebpf.ProgramSpec{Name: "reads", License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Reg(asm.R3, asm.R1),
		asm.Mov.Reg(asm.R1, asm.RFP),
		asm.Add.Imm(asm.R1, -8),
		asm.Mov.Imm(asm.R2, 8),
		asm.FnProbeReadKernel.Call(),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return(),
	}}
	k, err := kallscope.Live(kallscope.LiveOptions{})
	qt.Assert(t, qt.IsNil(err))
	for _, m := range []kallscope.Mechanism{kallscope.KprobeMulti, kallscope.Fentry} {
		p, err := k.Plan(kallscope.Query{Patterns: []string{"syscall:getppid"}}, kallscope.PlanOptions{Mechanism: m})
		qt.Assert(t, qt.IsNil(err))
		_, err = attach.Attach(context.Background(), attach.Programs{Entry: spec}, p, attach.Options{Kernel: k})
		qt.Check(t, qt.ErrorMatches(err, `(?s).*; kernel lockdown is "confidentiality": no bpf_probe_read_kernel\(\) or the like`))
	}
}
