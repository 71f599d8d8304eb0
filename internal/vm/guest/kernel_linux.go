package guest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// kernel is what init asks of the kernel, so that its decisions can be tested
// without one.
type kernel interface {
	mkdir(path string) error
	mount(m mountPoint) error
	loadModule(path string) error
	writeFile(path, text string) error
	linkUp(name string) error
	setRlimit(resource int, l unix.Rlimit) error
}

type realKernel struct{}

func (realKernel) mkdir(path string) error { return os.MkdirAll(path, 0o755) }

func (realKernel) mount(m mountPoint) error {
	return unix.Mount(m.name, m.target, m.fstype, m.flags, m.data)
}

func (realKernel) loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.FinitModule(int(f.Fd()), "", 0)
}

func (realKernel) writeFile(path, text string) error {
	return os.WriteFile(path, []byte(text), 0o644)
}

func (realKernel) linkUp(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

func (realKernel) setRlimit(resource int, l unix.Rlimit) error {
	return unix.Setrlimit(resource, &l)
}

// mountPoint is one file system. Its name is what NoMount leaves out.
type mountPoint struct {
	name, target, fstype string
	flags                uintptr
	data                 string
	// needed ones must mount; the others may be missing from the kernel.
	needed bool
}

const noExec = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// mounts in order. /tmp is not among them: the root itself is memory, and
// files from the host may already be below /tmp.
var mounts = []mountPoint{
	{name: "proc", target: "/proc", fstype: "proc", flags: noExec, needed: true},
	{name: "sysfs", target: "/sys", fstype: "sysfs", flags: noExec, needed: true},
	{name: "devtmpfs", target: "/dev", fstype: "devtmpfs", flags: unix.MS_NOSUID, needed: true},
	{name: "devpts", target: "/dev/pts", fstype: "devpts", flags: unix.MS_NOSUID | unix.MS_NOEXEC, data: "ptmxmode=0666,mode=0620"},
	{name: "shm", target: "/dev/shm", fstype: "tmpfs", flags: unix.MS_NOSUID | unix.MS_NODEV, data: "mode=1777"},
	{name: "run", target: "/run", fstype: "tmpfs", flags: unix.MS_NOSUID | unix.MS_NODEV, data: "mode=0755"},
	{name: "bpf", target: "/sys/fs/bpf", fstype: "bpf", flags: noExec, data: "mode=0700"},
	{name: "cgroup2", target: "/sys/fs/cgroup", fstype: "cgroup2", flags: noExec},
	{name: "securityfs", target: "/sys/kernel/security", fstype: "securityfs", flags: noExec},
	{name: "debugfs", target: "/sys/kernel/debug", fstype: "debugfs", flags: noExec},
	{name: "tracefs", target: "/sys/kernel/tracing", fstype: "tracefs", flags: noExec},
}

// mountAll mounts everything but the names in without. Without tracefs there
// is no debugfs either, because it mounts tracefs below itself on first use.
func mountAll(k kernel, without []string) error {
	for _, name := range without {
		if !slices.ContainsFunc(mounts, func(m mountPoint) bool { return m.name == name && !m.needed }) {
			return fmt.Errorf("leave out mount %q: no such mount, or one that init needs", name)
		}
	}
	if slices.Contains(without, "tracefs") {
		without = append(slices.Clip(without), "debugfs")
	}
	for _, m := range mounts {
		if slices.Contains(without, m.name) {
			continue
		}
		if err := mountOne(k, m); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return nil
}

func mountOne(k kernel, m mountPoint) error {
	// Mount points below /sys exist when the kernel has the file system, and
	// cannot be made when it has not.
	if err := k.mkdir(m.target); err != nil && !m.needed {
		return nil
	}
	err := k.mount(m)
	if !m.needed && errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// loadAll loads modules in order; one that is already there is no error.
func loadAll(k kernel, paths []string) error {
	for _, p := range paths {
		if err := k.loadModule(p); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load module %s: %w (the kernel log may say more)", p, err)
		}
	}
	return nil
}

// loadSome loads what can be loaded: among all modules of a kernel many want
// hardware that is not there. The refused ones are in the kernel log.
func loadSome(k kernel, l *line, paths []string) {
	refused := 0
	for _, p := range paths {
		if err := k.loadModule(p); err != nil && !errors.Is(err, unix.EEXIST) {
			refused++
			l.logf("load module %s: %v", p, err)
		}
	}
	l.logf("loaded %d modules, %d refused", len(paths)-refused, refused)
}

// sysctls that every guest has. An oops is never a success, and after one the
// machine often hangs: end there, with the log.
var sysctls = map[string]string{"kernel.panic_on_oops": "1"}

func setSysctls(k kernel, extra map[string]string) error {
	for _, set := range []map[string]string{sysctls, extra} {
		for name, value := range set {
			file := "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
			if err := k.writeFile(file, value); err != nil {
				return fmt.Errorf("set sysctl %s: %w", name, err)
			}
		}
	}
	return nil
}

// limits sets the number of open files that systemd gives its services; the
// kernel's own limit of 4,096 is too low for one perf event per function.
func limits(k kernel) error {
	err := k.setRlimit(unix.RLIMIT_NOFILE, unix.Rlimit{Cur: 1024, Max: 524288})
	if err != nil {
		return fmt.Errorf("set limit of open files: %w", err)
	}
	return nil
}
