package vm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// baseMemory is what a guest gets beside its files, in MiB. Debian's 6.12 with
// everything attached once fits into half of it.
const baseMemory = 512

// Start writes the guest's files and starts QEMU; it does not wait for the
// kernel to boot. Errors are about the host's side. After success, Wait must
// be called.
func (c *Cmd) Start() error {
	if c.run != nil {
		return errors.New("vm: already started")
	}
	if err := c.start(); err != nil {
		return fmt.Errorf("start guest: %w", err)
	}
	return nil
}

func (c *Cmd) start() (err error) {
	if err := c.complete(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "vm-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	initrd := filepath.Join(dir, "initrd")
	size, err := c.writeInitramfs(initrd)
	if err != nil {
		return err
	}
	socket := filepath.Join(dir, "port")
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	args := c.qemuArgs(initrd, socket, size)
	r := newRun(c, dir, l)
	if err := r.launch(c.QEMU, args); err != nil {
		r.cancel()
		l.Close()
		return err
	}
	c.run = r
	return nil
}

// complete checks the fields and fills in what is not given.
func (c *Cmd) complete() (err error) {
	switch {
	case c.Kernel.Image == "":
		return errors.New("no kernel given (see package kernels)")
	case c.Path == "":
		return errors.New("no program given")
	case slices.ContainsFunc(c.Append, func(p string) bool { return strings.ContainsAny(p, "\n\x00") }):
		return errors.New("kernel parameter with a line break")
	}
	if _, err := ImageRelease(c.Kernel.Image); err != nil {
		return err
	}
	if _, ok := c.Files[c.Path]; !ok {
		if c.Path, err = filepath.Abs(c.Path); err != nil {
			return err
		}
	}
	if c.QEMU == "" {
		if c.QEMU, err = FindQEMU(); err != nil {
			return err
		}
	}
	if c.ctx == nil {
		c.ctx = context.Background()
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	return nil
}

func (c *Cmd) qemuArgs(initrd, socket string, size int64) []string {
	b := board{cpus: max(c.CPUs, 1), memory: c.Memory, icount: c.Icount}
	if b.memory <= 0 {
		// The archive, its unpacked copy, and modules once more when loaded.
		b.memory = baseMemory + 3*int(size>>20)
	}
	return machineArgs(b, exitOnPanic{}, serialConsole{}, virtioPort{socket}, bootImage{
		kernel: c.Kernel.Image,
		initrd: initrd,
		params: append(slices.Clone(params), c.Append...),
	})
}

// launch starts QEMU and the goroutines that serve the guest.
func (r *run) launch(qemu string, args []string) error {
	cmd := exec.CommandContext(r.ctx, qemu, args...)
	cmd.Stdout = r.log
	cmd.Stderr = &r.qemuErr
	isolate(cmd)
	if err := startLocked(cmd, r.gone); err != nil {
		return err
	}
	go r.serve()
	return nil
}
