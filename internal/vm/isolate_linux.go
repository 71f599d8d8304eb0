package vm

import (
	"os/exec"
	"runtime"
	"syscall"
)

// isolate keeps ^C at the terminal from QEMU, which would end the guest before
// its program could react, and ends QEMU with this process.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// startLocked starts cmd and sends the result of its Wait to gone. The
// parent-death signal comes when the thread that started cmd ends, not the
// process (prctl(2), PR_SET_PDEATHSIG), so that thread stays.
func startLocked(cmd *exec.Cmd, gone chan<- error) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			gone <- cmd.Wait()
		}
	}()
	return <-started
}
