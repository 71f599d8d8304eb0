package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope/internal/vm/wire"
)

// portTimeout limits the wait for the virtio port to appear; 50 ms is usual.
const portTimeout = 20 * time.Second

// Main runs the guest's side and powers off, if this process is the first of
// a virtual machine; else it returns at once.
func Main() {
	if !Active() {
		return
	}
	if err := run(realKernel{}); err != nil {
		// Standard error is the console: the host shows the end of its log.
		fmt.Fprintf(os.Stderr, "vm: init: %v\n", err)
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	os.Exit(1) // init's end is a panic, which ends QEMU too
}

func run(k kernel) error {
	cfg, err := readConfig(wire.ConfigPath)
	if err != nil {
		return err
	}
	if err := loadAll(k, cfg.Transport); err != nil {
		return err
	}
	if err := mountAll(k, cfg.NoMount); err != nil {
		return err
	}
	port, err := openPort()
	if err != nil {
		return err
	}
	l, err := newLine(port)
	if err != nil {
		return err
	}
	status := session(k, l, cfg)
	if err := l.SendJSON(wire.Exit, status); err != nil {
		return fmt.Errorf("report exit status: %w", err)
	}
	l.waitClosed()
	return nil
}

// session does everything that can be reported over the port.
func session(k kernel, l *line, cfg wire.Config) wire.Status {
	if err := prepare(k, l, cfg); err != nil {
		l.setGroup(0)
		return wire.Status{Err: err.Error()}
	}
	status := command(l, cfg)
	if err := sendFiles(l, cfg.Fetch); err != nil && status.Err == "" {
		status.Err = err.Error()
	}
	return status
}

func prepare(k kernel, l *line, cfg wire.Config) error {
	if err := k.linkUp("lo"); err != nil {
		return fmt.Errorf("bring up lo: %w", err)
	}
	if err := limits(k); err != nil {
		return err
	}
	if err := setSysctls(k, cfg.Sysctl); err != nil {
		return err
	}
	if cfg.Lenient {
		loadSome(k, l, cfg.Modules)
		return nil
	}
	return loadAll(k, cfg.Modules)
}

func readConfig(file string) (wire.Config, error) {
	var cfg wire.Config
	data, err := os.ReadFile(file)
	if err != nil {
		return cfg, fmt.Errorf("read configuration: %w", err)
	}
	if err := json.Unmarshal(data, &cfg); err != nil {
		return cfg, fmt.Errorf("read configuration: %w", err)
	}
	return cfg, nil
}

// openPort opens the only virtio serial port. It is the first port of the
// first device, so its name is known: vportDEVICEpPORT, QEMU's nr=1.
func openPort() (*os.File, error) {
	const dev = "/dev/vport0p1"
	deadline := time.Now().Add(portTimeout)
	for {
		// Non-blocking, for Go's poller. A blocking write would spin in the
		// kernel until the host has taken the buffer (__send_to_port).
		f, err := os.OpenFile(dev, os.O_RDWR|unix.O_NONBLOCK, 0)
		if err == nil {
			return f, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("open virtio port: %w (no virtio_console in this kernel?)", err)
		}
		time.Sleep(time.Millisecond)
	}
}
