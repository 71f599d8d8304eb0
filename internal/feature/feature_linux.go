// Package feature asks the running kernel which mechanisms it has. It tries
// them, never compares version numbers: distributions build the same version
// with and without, and backport.
package feature

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope/internal/bpf"
)

// What stands between a process and a mechanism.
var (
	// ErrTooOld: the kernel does not know the mechanism.
	ErrTooOld = errors.New("older than the mechanism")
	// ErrNotBuilt: the kernel knows it but was built without.
	ErrNotBuilt = errors.New("built without it")
	// ErrPermission: this process may not load BPF programs.
	ErrPermission = errors.New("not permitted")
)

// KprobeMulti returns nil where kprobe.multi links work, ErrNotBuilt where the
// kernel was built without CONFIG_FPROBE, ErrTooOld before v5.18, and
// ErrPermission. It loads a program of two instructions and attaches nothing.
func KprobeMulti() error {
	prog, err := ebpf.NewProgramWithOptions(&ebpf.ProgramSpec{
		Name:         "probe",
		Type:         ebpf.Kprobe,
		AttachType:   ebpf.AttachTraceKprobeMulti,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		License:      "Dual BSD/GPL",
	}, ebpf.ProgramOptions{LogDisabled: true})
	if err != nil {
		return fromLoad(err)
	}
	defer prog.Close()
	switch err := bpf.ProbeKprobeMulti(prog.FD()); {
	case errors.Is(err, unix.EFAULT):
		return nil
	case errors.Is(err, unix.EOPNOTSUPP):
		return ErrNotBuilt
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: create a link: %w", ErrPermission, err)
	case errors.Is(err, unix.EINVAL):
		return ErrTooOld
	default:
		return fmt.Errorf("probe kprobe.multi: %w", err)
	}
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
