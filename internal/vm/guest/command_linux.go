package guest

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/kallscope/kallscope/internal/vm/wire"
)

// pipeDelay is how long processes left behind by the command may hold its
// standard output open.
const pipeDelay = 2 * time.Second

// command runs the command and returns how it ended.
func command(l *line, cfg wire.Config) wire.Status {
	cmd := newCommand(l, cfg)
	if err := start(l, cmd, cfg.Stdin); err != nil {
		l.setGroup(0)
		return wire.Status{Err: fmt.Sprintf("run %s: %v", cfg.Path, startCause(err))}
	}
	l.setGroup(cmd.Process.Pid)
	if err := l.Send(wire.Started, nil); err != nil {
		return wire.Status{Err: err.Error()}
	}
	err := cmd.Wait()
	l.in.end()
	return exitStatus(err)
}

func start(l *line, cmd *exec.Cmd, stdin bool) error {
	if !stdin {
		return cmd.Start()
	}
	w, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go l.feed(w)
	return nil
}

func newCommand(l *line, cfg wire.Config) *exec.Cmd {
	cmd := &exec.Cmd{
		Path:      cfg.Path,
		Args:      cfg.Args,
		Env:       cfg.Env,
		Dir:       cfg.Dir,
		Stdout:    l.Stream(wire.Stdout),
		Stderr:    l.Stream(wire.Stderr),
		WaitDelay: pipeDelay,
		// A group of its own gets signals as from a terminal, init does not.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if cfg.UID != 0 {
		id := uint32(cfg.UID)
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: id, Gid: id}
	}
	return cmd
}

// startCause explains the error that a missing ELF interpreter gives, which
// reads as if the program itself were missing.
func startCause(err error) error {
	if errors.Is(err, syscall.ENOENT) && !strings.Contains(err.Error(), "chdir") {
		return fmt.Errorf("%w (dynamically linked? build with CGO_ENABLED=0)", err)
	}
	return err
}

func exitStatus(err error) wire.Status {
	var exit *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return wire.Status{}
	case !errors.As(err, &exit):
		return wire.Status{Err: err.Error()}
	}
	ws := exit.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return wire.Status{Code: 128 + int(ws.Signal()), Signal: int(ws.Signal())}
	}
	return wire.Status{Code: ws.ExitStatus()}
}
