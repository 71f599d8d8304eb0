package bpf

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"
)

// TestTemplate: calls become constants, wherever they are behind wide
// instructions, and all else stays.
func TestTemplate(t *testing.T) {
	insns := asm.Instructions{
		asm.LoadImm(asm.R6, 1<<40, asm.DWord), // takes two places
		asm.FnGetAttachCookie.Call(),
		asm.FnGetFuncIp.Call(),
		asm.FnGetAttachCookie.Call(),
		asm.Return(),
	}
	template, err := NewTemplate(&ebpf.ProgramSpec{Type: ebpf.Kprobe, Instructions: insns}, nil)
	qt.Assert(t, qt.IsNil(err))
	defer template.Close()
	qt.Assert(t, qt.DeepEquals(template.cookieAt, []int{16, 32}))
	qt.Assert(t, qt.DeepEquals(template.addrAt, []int{24}))

	const addr = 0xffffffff81000010
	got, err := asm.AppendInstructions(nil, bytes.NewReader(template.instance(Instance{Cookie: 7, Addr: addr})), nativeEndian, "linux")
	qt.Assert(t, qt.IsNil(err))
	want := asm.Instructions{
		insns[0], asm.Mov.Imm(asm.R0, 7), asm.Mov.Imm(asm.R0, -0x7efffff0), asm.Mov.Imm(asm.R0, 7), asm.Return(),
	}
	qt.Assert(t, qt.Equals(fmt.Sprint(got), fmt.Sprint(want)))

	// An address that fits in no constant is the kernel's to tell, as is all
	// that is zero.
	for _, in := range []Instance{{Addr: 0xffff800081000000}, {}} {
		qt.Assert(t, qt.DeepEquals(template.instance(in), template.code))
	}
}

// TestTemplateReferences: what is not resolved is not loaded as zero.
func TestTemplateReferences(t *testing.T) {
	for want, ins := range map[string]asm.Instruction{
		"this kernel has no function foo: .*":             {OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoKfuncCall, Constant: -1},
		"the address of kernel symbol foo in a program.*": asm.LoadImm(asm.R1, 0, asm.DWord),
	} {
		spec := &ebpf.ProgramSpec{Type: ebpf.Tracing, Instructions: asm.Instructions{ins.WithReference("foo"), asm.Return()}}
		_, err := NewTemplate(spec, nil)
		qt.Assert(t, qt.ErrorIs(err, ebpf.ErrNotSupported))
		qt.Assert(t, qt.ErrorMatches(err, want))
	}
}

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "kallscope_entry": "kallscope_entry", "a-b c.d": "abc.d", "a_name_that_is_too_long": "a_name_that_is_", "näme": "nme",
	} {
		got := name(in)
		qt.Assert(t, qt.Equals(string(bytes.TrimRight(got[:], "\x00")), want))
	}
}

func TestVerifierError(t *testing.T) {
	const refused = "Attaching tracing programs to function 'migrate_disable' is rejected.\nprocessed 0 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0"
	const bad = "func#0 @0\n0: R1=ctx() R10=fp0\n0: (95) exit\nR0 !read_ok\nverification time 42 usec\nstack depth 0\nprocessed 1 insns (limit 1000000)"
	for _, test := range []struct {
		log, text string
		inProgram bool
	}{
		{refused, "EINVAL (invalid argument): Attaching tracing programs to function 'migrate_disable' is rejected.", false},
		{bad, "EINVAL (invalid argument): R0 !read_ok", true},
		{"", "EINVAL (invalid argument)", false},
	} {
		err := &VerifierError{Errno: unix.EINVAL, Log: test.log}
		qt.Assert(t, qt.ErrorIs(err, unix.EINVAL))
		qt.Assert(t, qt.Equals(err.Error(), test.text))
		qt.Assert(t, qt.Equals(err.InProgram(), test.inProgram))
		var verifier *ebpf.VerifierError
		qt.Assert(t, qt.ErrorAs(err, &verifier))
		qt.Assert(t, qt.Equals(strings.Join(verifier.Log, "\n"), test.log))
	}
}
