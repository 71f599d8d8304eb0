package bpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// A Template is a program that is loaded many times, for another function each
// time. What is the same for all is done once: relocations, the program's BTF,
// the bytes of the instructions.
type Template struct {
	spec     *ebpf.ProgramSpec
	code     []byte
	cookieAt []int // offsets in code of calls of bpf_get_attach_cookie()
	addrAt   []int // and of bpf_get_func_ip()
	funcInfo []byte
	types    *btf.Handle
}

// nativeEndian is binary.NativeEndian in the form that cilium/ebpf takes.
var nativeEndian = func() binary.ByteOrder {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return binary.LittleEndian
	}
	return binary.BigEndian
}()

// instructionSize is that of struct bpf_insn.
const instructionSize = asm.InstructionSize

// NewTemplate makes the template of a spec whose references to maps and kernel
// functions are resolved. The kernel's own types are taken from cache when the
// program was compiled for others; cilium/ebpf reads them at the cost of about
// 0.2 s under emulation.
func NewTemplate(spec *ebpf.ProgramSpec, cache *btf.Cache) (_ *Template, err error) {
	t := &Template{spec: spec.Copy()}
	insns := t.spec.Instructions
	if err := checkReferences(insns); err != nil {
		return nil, err
	}
	var b btf.Builder
	if err := relocate(insns, &b, cache); err != nil {
		return nil, err
	}
	// Line infos are left out: they cost kernel memory for each function.
	t.funcInfo, _, err = btf.MarshalExtInfos(insns, &b)
	if err != nil {
		return nil, err
	}
	if len(t.funcInfo) > 0 {
		if t.types, err = btf.NewHandle(&b); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	var code bytes.Buffer
	if err := insns.Marshal(&code, nativeEndian); err != nil {
		return nil, err
	}
	t.code = code.Bytes()
	t.findCalls(insns)
	return t, nil
}

// checkReferences refuses what a template does not resolve: cilium/ebpf would,
// with what it keeps to itself.
func checkReferences(insns asm.Instructions) error {
	for i := range insns {
		ins := &insns[i]
		switch {
		case ins.IsKfuncCall() && ins.Constant == -1:
			return fmt.Errorf("this kernel has no function %s: %w", ins.Reference(), ebpf.ErrNotSupported)
		case ins.OpCode.IsDWordLoad() && ins.Reference() != "" && !ins.IsLoadFromMap() && !ins.IsLoadOfFunctionPointer():
			return fmt.Errorf("the address of kernel symbol %s in a program for one function: %w", ins.Reference(), ebpf.ErrNotSupported)
		}
	}
	return nil
}

// relocate makes accesses to the kernel's structures fit the running kernel.
func relocate(insns asm.Instructions, b *btf.Builder, cache *btf.Cache) error {
	var relocations []*btf.CORERelocation
	var at []*asm.Instruction
	for it := insns.Iterate(); it.Next(); {
		if r := btf.CORERelocationMetadata(it.Ins); r != nil {
			relocations, at = append(relocations, r), append(at, it.Ins)
		}
	}
	if len(relocations) == 0 {
		return nil
	}
	kernel, err := cache.Kernel()
	if err != nil {
		return err
	}
	fixes, err := btf.CORERelocate(relocations, []*btf.Spec{kernel}, nativeEndian, b.Add)
	if err != nil {
		return err
	}
	for i, fix := range fixes {
		if err := fix.Apply(at[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *Template) findCalls(insns asm.Instructions) {
	for it := insns.Iterate(); it.Next(); {
		if !it.Ins.IsBuiltinCall() {
			continue
		}
		switch asm.BuiltinFunc(it.Ins.Constant) {
		case asm.FnGetAttachCookie:
			t.cookieAt = append(t.cookieAt, int(it.Offset)*instructionSize)
		case asm.FnGetFuncIp:
			t.addrAt = append(t.addrAt, int(it.Offset)*instructionSize)
		}
	}
}

// Close releases the template; programs loaded from it stay.
func (t *Template) Close() error {
	if t.types == nil {
		return nil
	}
	return t.types.Close()
}

// An Instance is what differs between the programs of a template.
type Instance struct {
	// BTFObject is the file descriptor of a module's BTF, zero for vmlinux;
	// BTFID the function. Both are zero for kprobes.
	BTFObject int
	BTFID     uint32
	// Cookie is what bpf_get_attach_cookie() returns, at most 2^31-1: its calls
	// become constants. So programs need no cookies of the kernel, which 5.10
	// does not have for these links, and are faster. Zero leaves it to the
	// kernel.
	Cookie uint64
	// Addr is what bpf_get_func_ip() returns; zero leaves that to the kernel.
	// It becomes a constant where it fits in one, as on x86-64.
	Addr uint64
}

type progAttr struct {
	progType           uint32
	instructions       uint32
	insns              pointer
	license            pointer
	logLevel           uint32
	logSize            uint32
	logBuf             pointer
	_                  uint32 // kern_version
	flags              uint32
	name               [16]byte
	_                  uint32 // prog_ifindex
	expectedAttachType uint32
	btfFD              uint32
	funcInfoSize       uint32
	funcInfo           pointer
	funcInfoCount      uint32
	_                  uint32 // line_info_rec_size
	_                  uint64 // line_info
	_                  uint32 // line_info_cnt
	attachBTFID        uint32
	attachObject       uint32
	_                  uint32
}

// logSize is enough for why a function is refused, and for the beginning of
// what is wrong with a program.
const logSize = 1 << 16

// Load loads the program of one function. When the verifier refuses it the
// error is a [*VerifierError].
func (t *Template) Load(in Instance) (*ebpf.Program, error) {
	code := t.instance(in)
	attr := &progAttr{
		progType:           uint32(t.spec.Type),
		insns:              sliceOf(code),
		instructions:       uint32(len(code) / instructionSize),
		license:            stringOf(t.spec.License),
		flags:              t.spec.Flags,
		name:               name(t.spec.Name),
		expectedAttachType: uint32(t.spec.AttachType),
		attachBTFID:        in.BTFID,
		attachObject:       uint32(in.BTFObject),
	}
	if t.types != nil {
		attr.btfFD = uint32(t.types.FD())
		attr.funcInfo, attr.funcInfoSize = sliceOf(t.funcInfo), btf.FuncInfoSize
		attr.funcInfoCount = uint32(len(t.funcInfo)) / btf.FuncInfoSize
	}
	fd, err := Charged(func() (int, error) { return loadAgain(attr) })
	switch {
	case err == nil:
		return ebpf.NewProgramFromFD(fd)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOMEM):
		return nil, err
	}
	return nil, explain(attr, err)
}

// loadAgain loads, and again while a signal, with which Go preempts goroutines,
// ends the verifier's work (EAGAIN from bpf_check()).
func loadAgain(attr *progAttr) (fd int, err error) {
	for range 30 {
		if fd, err = call(progLoad, attr); !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return fd, err
}

// instance returns the code for one function.
func (t *Template) instance(in Instance) []byte {
	code := bytes.Clone(t.code)
	if in.Cookie != 0 {
		patch(code, t.cookieAt, int32(in.Cookie))
	}
	if addr := int64(in.Addr); addr != 0 && int64(int32(addr)) == addr {
		patch(code, t.addrAt, int32(addr))
	}
	return code
}

// patch turns calls into R0 = value, with its sign extended to 64 bits. A call
// gives up R1 to R5, so no program relies on what is in them behind it.
func patch(code []byte, offsets []int, value int32) {
	var move bytes.Buffer
	if _, err := asm.Mov.Imm(asm.R0, value).Marshal(&move, nativeEndian); err != nil {
		return // of a constant instruction
	}
	for _, at := range offsets {
		copy(code[at:], move.Bytes())
	}
}

// explain loads once more, for the verifier's log.
func explain(attr *progAttr, err error) error {
	log := make([]byte, logSize)
	attr.logBuf, attr.logSize, attr.logLevel = sliceOf(log), logSize, 1
	if fd, err := call(progLoad, attr); err == nil {
		unix.Close(fd)
	}
	text, _, _ := bytes.Cut(log, []byte{0})
	return &VerifierError{Errno: err, Log: strings.TrimSpace(string(text))}
}

// name returns a name as the kernel takes it: letters, digits, _ and ., at most
// 15 of them.
func name(s string) (n [16]byte) {
	valid := strings.Map(func(r rune) rune {
		if r == '_' || r == '.' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return -1
	}, s)
	copy(n[:len(n)-1], valid)
	return n
}

// A VerifierError is why a program was not loaded.
type VerifierError struct {
	Errno error
	Log   string
}

// Error is the last line of the log that says something.
func (e *VerifierError) Error() string {
	for _, line := range slices.Backward(strings.Split(e.Log, "\n")) {
		if line != "" && !isStatistics(line) {
			return ErrnoText(e.Errno) + ": " + strings.TrimSpace(line)
		}
	}
	return ErrnoText(e.Errno)
}

// isStatistics is for the lines of print_verification_stats() in
// kernel/bpf/verifier.c.
func isStatistics(line string) bool {
	return strings.HasPrefix(line, "processed ") || strings.HasPrefix(line, "verification time ") || strings.HasPrefix(line, "stack depth ")
}

// Unwrap returns the error number.
func (e *VerifierError) Unwrap() error { return e.Errno }

// As gives the error the form that programs loaded by cilium/ebpf have.
func (e *VerifierError) As(target any) bool {
	v, ok := target.(**ebpf.VerifierError)
	if ok {
		*v = &ebpf.VerifierError{Cause: e.Errno, Log: strings.Split(e.Log, "\n")}
	}
	return ok
}

// InProgram reports whether the verifier had begun with the instructions: then
// the function is not to blame alone.
func (e *VerifierError) InProgram() bool {
	return !strings.Contains(e.Log, "processed 0 insns") && strings.Contains(e.Log, "processed ")
}
