// Package feature asks the running kernel which mechanisms it has. It tries
// them, never compares version numbers: distributions build the same version
// with and without, and backport.
package feature

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope/internal/bpf"
	"github.com/kallscope/kallscope/internal/btfscan"
)

// What stands between a process and a mechanism.
var (
	// ErrTooOld: the kernel does not know the mechanism.
	ErrTooOld = errors.New("older than the mechanism")
	// ErrNotBuilt: the kernel knows it but was built without.
	ErrNotBuilt = errors.New("built without it")
	// ErrPermission: this process may not use it.
	ErrPermission = errors.New("not permitted")
	// ErrParanoid: this process may load the program, and not open a perf event.
	ErrParanoid = errors.New("kernel.perf_event_paranoid does not permit it")
	// ErrLockdown: the kernel is locked down against it.
	ErrLockdown = errors.New("locked down")
	// ErrFtraceOff: it attaches, but the kernel does not call what is attached.
	ErrFtraceOff = errors.New("kernel.ftrace_enabled is 0")
)

// probes are by the names of mechanisms, as libbpf has them.
var probes = map[string]func() error{
	"kprobe.multi":    func() error { return kprobeMulti(ebpf.AttachTraceKprobeMulti) },
	"kretprobe.multi": func() error { return kprobeMulti(ebpf.AttachTraceKprobeMulti) },
	"kprobe.session":  func() error { return kprobeMulti(ebpf.AttachTraceKprobeSession) },
	"fentry":          func() error { return tracing(ebpf.AttachTraceFEntry) },
	"fexit":           func() error { return tracing(ebpf.AttachTraceFExit) },
	"fsession":        func() error { return tracing(bpf.AttachFsession) },
	"fentry.multi":    func() error { return tracingMulti(bpf.AttachFentryMulti) },
	"fexit.multi":     func() error { return tracingMulti(bpf.AttachFexitMulti) },
	"fsession.multi":  func() error { return tracingMulti(bpf.AttachFsessionMulti) },
	"kprobe":          func() error { return kprobe(false) },
	"kretprobe":       func() error { return kprobe(true) },
}

// Probe returns nil where a mechanism works, by its name. Otherwise the error is
// one of those above, or what else the kernel answered. It loads a program of two
// instructions and attaches nothing.
func Probe(mechanism string) error {
	probe, ok := probes[mechanism]
	if !ok {
		return fmt.Errorf("no mechanism %q", mechanism)
	}
	if err := probe(); err != nil {
		return err
	}
	if Sysctl("ftrace_enabled") == "0" {
		return ErrFtraceOff // kprobes at an entry go by ftrace too
	}
	return nil
}

// Sysctl returns a setting of the kernel, or "" where that cannot be read.
func Sysctl(name string) string {
	value, _ := os.ReadFile("/proc/sys/kernel/" + name)
	return string(bytes.TrimSpace(value))
}

func kprobeMulti(t ebpf.AttachType) error {
	prog, err := load(ebpf.Kprobe, t)
	if err != nil {
		return fromLoad(err)
	}
	defer prog.Close()
	return fromLink(bpf.ProbeKprobeMulti(prog, t))
}

func tracingMulti(t ebpf.AttachType) error {
	prog, err := load(ebpf.Tracing, t)
	if errors.Is(err, unix.EINVAL) {
		return ErrTooOld
	}
	if err != nil {
		return fromLoad(err)
	}
	defer prog.Close()
	return fromLink(bpf.ProbeTracingMulti(prog, t))
}

// fromLink reads the answer for an unreadable array.
func fromLink(err error) error {
	switch {
	case errors.Is(err, unix.EFAULT):
		return nil
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%w: %w", ErrNotBuilt, err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: create a link: %w", ErrPermission, err)
	case errors.Is(err, unix.EINVAL):
		return ErrTooOld
	}
	return fmt.Errorf("probe: create a link: %w", err)
}

func load(typ ebpf.ProgramType, t ebpf.AttachType) (*ebpf.Program, error) {
	return bpf.Charged(func() (*ebpf.Program, error) {
		return ebpf.NewProgramWithOptions(nothing(typ, t), ebpf.ProgramOptions{LogDisabled: true})
	})
}

func nothing(typ ebpf.ProgramType, t ebpf.AttachType) *ebpf.ProgramSpec {
	return &ebpf.ProgramSpec{
		Name: "probe", Type: typ, AttachType: t, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	}
}

// tracing loads a program for a function that exists for this purpose.
func tracing(t ebpf.AttachType) error {
	const function = "bpf_fentry_test1" // net/bpf/test_run.c
	vmlinux, err := btfscan.Open("/sys/kernel/btf/vmlinux", nil)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: no BTF (CONFIG_DEBUG_INFO_BTF)", ErrNotBuilt)
	}
	if err != nil {
		return err
	}
	defer vmlinux.Close()
	if !directCalls(vmlinux.BTF) {
		return ErrNotBuilt // it would load and not attach: ENOTSUPP
	}
	ids := vmlinux.ByName(function)
	if len(ids) == 0 {
		return fmt.Errorf("probe: BTF has no function %s to try it on", function)
	}
	template, err := bpf.NewTemplate(nothing(ebpf.Tracing, t), nil)
	if err != nil {
		return err
	}
	defer template.Close()
	prog, err := template.Load(bpf.Instance{BTFID: ids[0].ID})
	switch {
	case err == nil:
		return prog.Close()
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, bpf.ErrNotSupp):
		return fmt.Errorf("%w: %w", ErrNotBuilt, err)
	case errors.Is(err, unix.EINVAL):
		return ErrTooOld
	}
	return fromLoad(err)
}

// directCalls reports whether the kernel has the function by which ftrace calls
// trampolines; arm64 has it since v6.4 only. Old pahole leaves out what cannot be
// traced, so its absence says something only beside another function of that
// file.
func directCalls(vmlinux *btfscan.BTF) bool {
	has := func(name string) bool { return len(vmlinux.ByName(name)) > 0 }
	return has("register_ftrace_direct") || !has("register_ftrace_function")
}

// kprobe asks for a probe where there is no function.
func kprobe(atReturn bool) error {
	pmu, err := bpf.NewKprobePMU()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: no perf events for kprobes (CONFIG_KPROBE_EVENTS)", ErrNotBuilt)
	}
	if err != nil {
		return err
	}
	prog, err := load(ebpf.Kprobe, ebpf.AttachNone)
	if err != nil {
		return fromLoad(err)
	}
	defer prog.Close()
	fd, err := pmu.Open(bpf.ProbePoint{Addr: 1 << 12, Return: atReturn})
	switch {
	case err == nil:
		unix.Close(fd)
		return errors.New("probe: the kernel made a kprobe where there is no function")
	case errors.Is(err, unix.EPERM) && machine("/").locked():
		return fmt.Errorf("%w: open a perf event: %w", ErrLockdown, err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: open a perf event: %w", ErrParanoid, err)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT), errors.Is(err, unix.EILSEQ):
		return nil
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%w: %w", ErrNotBuilt, err)
	}
	return fmt.Errorf("probe: open a perf event: %w", err)
}

// Cookies returns nil where programs on single kprobes have cookies, since
// v5.15.
func Cookies() error {
	prog, err := load(ebpf.Kprobe, ebpf.AttachNone)
	if err != nil {
		return fromLoad(err)
	}
	defer prog.Close()
	if bpf.HasKprobeLinks(prog) != nil {
		return ErrTooOld
	}
	return nil
}

func fromLoad(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: load a program: %w", ErrPermission, err)
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("%w: no bpf(2) in this kernel: %w", ErrNotBuilt, err)
	}
	return fmt.Errorf("probe: load a program: %w", err)
}
