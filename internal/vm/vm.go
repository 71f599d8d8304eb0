// Package vm runs a program in a small virtual machine with a kernel of
// choice, in the manner of os/exec: who knows exec.Cmd knows [Cmd].
//
//	kernel, err := kernels.Find("6.12")
//	cmd := vm.CommandContext(ctx, kernel, "/bin/count", "tcp_*")
//	cmd.Stdout = os.Stdout
//	err = cmd.Run() // *vm.ExitError if the program fails
//
// The program is copied into the guest together with Files, and runs there as
// root with /proc, /sys, tracefs and the like mounted. There is no shell, no
// library and no network but lo: programs must be statically linked.
//
// QEMU emulates one CPU after another in a single thread ("tcg,thread=single"):
// with a thread per CPU, guests crash when the kernel patches its own code,
// which is what attaching does. A machine takes some seconds to start and
// 512 MiB.
//
// How a guest comes about: [Cmd.Start] writes an initial RAM file system with
// the program, the files and an init (package guest), starts QEMU with it, and
// speaks with init over a virtio serial port (package wire). The kernel log
// comes over a serial line and never mixes with the program's output.
package vm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// Defaults of [Cmd] fields.
const (
	DefaultTimeout = 5 * time.Minute
	DefaultPath    = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Cmd is a program to be run in a guest. It runs once. The fields that have
// the names of exec.Cmd's have their meaning too, inside the guest.
type Cmd struct {
	// Kernel to boot, see [OpenKernel] and package kernels. Required.
	Kernel Kernel

	// Path of the program, a statically linked file of the host that is copied
	// to the same absolute path in the guest; unless Files has that path, then
	// it is one of the guest. Required.
	Path string
	// Args begin with the name of the program, as in exec.Cmd. Empty means Path.
	Args []string
	// Env is the program's environment. Nil means PATH and HOME.
	Env []string
	// Dir is the working directory in the guest, made if missing. Empty means /.
	Dir string

	// Stdin is read until its end or that of the program; nil means none. Wait
	// does not wait for a Read that blocks.
	Stdin io.Reader
	// Stdout and Stderr get the program's output, byte for byte, from one
	// goroutine. Nil discards.
	Stdout, Stderr io.Writer
	// Console gets the kernel log as it comes, beside [Cmd.KernelLog].
	Console io.Writer

	// Modules to load before the program starts; what they depend on comes by
	// itself. "all" is all but the kernel's self-tests, some may then refuse to
	// load; it takes minutes.
	Modules []string
	// Files to copy into the guest: path there → file or folder of the host.
	Files map[string]string
	// Fetch names files or folders to bring back when the program has ended,
	// whatever its status: path in the guest → path on the host. What is
	// missing makes Wait fail with an error that wraps fs.ErrNotExist.
	Fetch map[string]string
	// FetchOptional is like Fetch for what the program may not have written.
	FetchOptional map[string]string

	// Memory in MiB. Zero means 512 and three times the initial file system.
	Memory int
	// CPUs the guest sees; zero means one. More do not make it faster.
	CPUs int
	// Append are further kernel parameters.
	Append []string
	// Sysctl are set before the program starts, names with dots.
	Sysctl map[string]string
	// NoMount leaves out file systems by name: tracefs (debugfs goes too, which
	// would mount it), debugfs, securityfs, bpf, cgroup2, devpts, shm, run.
	NoMount []string
	// UID runs the program as this user and group; zero is root.
	UID int
	// Timeout limits the whole run, starting at Start. Zero or less means
	// [DefaultTimeout]: there is always a limit.
	Timeout time.Duration
	// Icount makes guest time count instructions ("-icount shift=0"), so that
	// times repeat within about 1 %. It takes longer.
	Icount bool

	// QEMU is the emulator's path. Empty looks up qemu-system-x86_64.
	QEMU string
	// Init is a static program that calls [GuestMain]. Empty means this very
	// program if it does, else internal/cmd/guestinit, built on the spot.
	Init string

	ctx context.Context
	run *run
}

// Command returns the Cmd that runs the named program with the arguments.
func Command(kernel Kernel, name string, arg ...string) *Cmd {
	return CommandContext(context.Background(), kernel, name, arg...)
}

// CommandContext is like [Command]; the end of ctx ends the guest, and Wait
// returns an error that wraps the context's cause.
func CommandContext(ctx context.Context, kernel Kernel, name string, arg ...string) *Cmd {
	return &Cmd{Kernel: kernel, Path: name, Args: append([]string{name}, arg...), ctx: ctx}
}

// Run starts the guest and waits for the program to end. The error is nil for
// exit status zero, an [*ExitError] for any other, a [*CrashError] when the
// guest ended without one.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output runs the program and returns its standard output. If Stderr was nil,
// an [*ExitError] carries the standard error.
func (c *Cmd) Output() ([]byte, error) {
	if c.Stdout != nil {
		return nil, errors.New("vm: Stdout already set")
	}
	var stdout, stderr bytes.Buffer
	c.Stdout = &stdout
	capture := c.Stderr == nil
	if capture {
		c.Stderr = &stderr
	}
	err := c.Run()
	var exit *ExitError
	if capture && errors.As(err, &exit) {
		exit.Stderr = stderr.Bytes()
	}
	return stdout.Bytes(), err
}

// CombinedOutput runs the program and returns standard output and error in the
// order in which they were written.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	if c.Stdout != nil || c.Stderr != nil {
		return nil, errors.New("vm: Stdout or Stderr already set")
	}
	var b bytes.Buffer
	c.Stdout, c.Stderr = &b, &b
	err := c.Run()
	return b.Bytes(), err
}

// Wait waits for the program to end and the guest to be gone. See [Cmd.Run]
// for its errors. It must be called once after Start.
func (c *Cmd) Wait() error {
	if c.run == nil {
		return errors.New("vm: not started")
	}
	return c.run.wait()
}

// Signal sends a signal to the program's process group, as a terminal does; if
// the program does not run yet, as soon as it does. Safe for concurrent use
// once Start has returned.
func (c *Cmd) Signal(sig os.Signal) error {
	if c.run == nil {
		return errors.New("vm: not started")
	}
	return c.run.signal(sig)
}

// Started returns a channel that is closed once the program runs in the guest,
// or the guest has ended. Nil before Start.
func (c *Cmd) Started() <-chan struct{} {
	if c.run == nil {
		return nil
	}
	return c.run.started
}

// KernelLog returns what the kernel has logged so far, at most its last MiB.
// Safe for concurrent use once Start has returned.
func (c *Cmd) KernelLog() string {
	if c.run == nil {
		return ""
	}
	return c.run.log.String()
}
