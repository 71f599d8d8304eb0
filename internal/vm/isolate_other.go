//go:build !linux

package vm

import "os/exec"

// isolate does nothing where processes have no parent-death signal.
func isolate(*exec.Cmd) {}

// startLocked starts cmd and sends the result of its Wait to gone.
func startLocked(cmd *exec.Cmd, gone chan<- error) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { gone <- cmd.Wait() }()
	return nil
}
