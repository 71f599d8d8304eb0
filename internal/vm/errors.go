package vm

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// Reasons why a guest ended without the program's exit status.
var (
	// ErrPanic says that the guest's kernel panicked or oopsed.
	ErrPanic = errors.New("kernel panic")
	// ErrTimeout says that Cmd.Timeout passed: too slow, or hung.
	ErrTimeout = errors.New("timeout")
	// ErrVanished says that the guest ended and the log does not say why.
	ErrVanished = errors.New("guest ended without an exit status")
)

// ErrNoQEMU is wrapped when there is no emulator.
var ErrNoQEMU = errors.New("qemu-system-x86_64 not found")

// tailLines is how much of the kernel log errors show.
const tailLines = 30

// ExitError says that the program ran and did not succeed.
type ExitError struct {
	// Code is the exit status; 128 + Signal for a program that was killed.
	Code int
	// Signal that killed the program, else zero.
	Signal int
	// Stderr is what [Cmd.Output] has collected.
	Stderr []byte
}

func (e *ExitError) Error() string {
	if e.Signal != 0 {
		return fmt.Sprintf("signal: %v", syscall.Signal(e.Signal))
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// CrashError says that the guest ended before the program did.
type CrashError struct {
	// Cause is [ErrPanic], [ErrTimeout], [ErrVanished], the cause of the
	// context's end, or an error of the connection.
	Cause error
	// Log is the end of the kernel log, some 30 lines.
	Log string
	// QEMU is what the emulator wrote to its standard error.
	QEMU string
}

func (e *CrashError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "guest: %v", e.Cause)
	if e.QEMU != "" {
		fmt.Fprintf(&b, "\nqemu: %s", e.QEMU)
	}
	if e.Log == "" {
		b.WriteString("\nthe kernel has logged nothing")
		return b.String()
	}
	b.WriteString("\nend of the kernel log:\n")
	b.WriteString(e.Log)
	return b.String()
}

// Unwrap returns the cause.
func (e *CrashError) Unwrap() error { return e.Cause }

// panicMarks begin the lines that the kernel logs on its way down.
var panicMarks = []string{"Kernel panic - not syncing", "BUG: ", "Oops: ", "general protection fault"}

// crashCause reads from the log why a guest ended by itself.
func crashCause(log string) error {
	for line := range strings.Lines(log) {
		for _, mark := range panicMarks {
			if i := strings.Index(line, mark); i >= 0 {
				return fmt.Errorf("%w: %s", ErrPanic, strings.TrimSpace(line[i:]))
			}
		}
	}
	return ErrVanished
}

// tail returns the last n lines of text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
