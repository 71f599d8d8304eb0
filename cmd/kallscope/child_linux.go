package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// childCommand is the command behind --. It is started before attaching, so
// that its process id is known, but stopped in front of its first instruction.
type childCommand struct {
	cmd    *exec.Cmd
	speak  io.Writer
	exited chan error
}

// startStopped starts a command and stops it.
func startStopped(command []string, s stdio) (*childCommand, error) {
	c := &childCommand{cmd: exec.Command(command[0], command[1:]...), speak: s.err, exited: make(chan error, 1)}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = s.in, s.out, s.err
	// Should this process be killed, the command goes on instead of staying
	// stopped for ever.
	c.cmd.SysProcAttr = &unix.SysProcAttr{Ptrace: true, Pdeathsig: unix.SIGCONT}
	// Only the thread that started a traced process may let it go.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("command: %w", err)
	}
	// It has stopped itself in execve(2); let go, it stays stopped by SIGSTOP.
	if err := c.release(); err != nil {
		c.kill()
		return nil, fmt.Errorf("command %s: %w", command[0], err)
	}
	go func() { c.exited <- c.cmd.Wait() }()
	return c, nil
}

func (c *childCommand) release() error {
	var status unix.WaitStatus
	if _, err := unix.Wait4(c.pid(), &status, 0, nil); err != nil {
		return fmt.Errorf("wait for its start: %w", err)
	}
	if !status.Stopped() {
		return fmt.Errorf("it ended before it began (status %#x)", status)
	}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(c.pid()), 0, uintptr(unix.SIGSTOP), 0, 0)
	if errno != 0 {
		return fmt.Errorf("let it go: %w", errno)
	}
	return nil
}

func (c *childCommand) pid() int { return c.cmd.Process.Pid }

// resume lets the command run, and returns where its end is sent.
func (c *childCommand) resume() <-chan error {
	if err := c.cmd.Process.Signal(unix.SIGCONT); err != nil {
		fmt.Fprintf(c.speak, "command: %v\n", err)
	}
	return c.exited
}

// tell says how the command ended, unless it ended well.
func (c *childCommand) tell(err error) {
	if err != nil {
		fmt.Fprintf(c.speak, "command %s: %v\n", c.cmd.Args[0], err)
	}
}

// stop ends a command that still runs: it is asked first, and killed when it
// has not ended a second later.
func (c *childCommand) stop() {
	if errors.Is(c.cmd.Process.Signal(unix.SIGTERM), os.ErrProcessDone) {
		return
	}
	_ = c.cmd.Process.Signal(unix.SIGCONT)
	select {
	case <-c.exited:
	case <-time.After(time.Second):
		c.kill()
	}
}

func (c *childCommand) kill() { _ = c.cmd.Process.Kill() }
