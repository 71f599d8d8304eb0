package vm

import (
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/kallscope/kallscope/internal/vm/wire"
)

// emulator is the program that runs guests.
const emulator = "qemu-system-x86_64"

// device is something of the machine that QEMU's command line describes.
type device interface{ args() []string }

// board is the machine without devices.
type board struct {
	cpus, memory int
	icount       bool
}

func (b board) args() []string {
	args := []string{
		"-no-user-config", "-nodefaults", "-display", "none",
		"-machine", "q35",
		"-accel", "tcg,thread=single",
		"-cpu", "max",
		"-smp", strconv.Itoa(b.cpus),
		"-m", strconv.Itoa(b.memory),
	}
	if b.icount {
		args = append(args, "-icount", "shift=0")
	}
	return args
}

// exitOnPanic makes every restart the end: the kernel restarts at once on a
// panic because of panic=-1.
type exitOnPanic struct{}

func (exitOnPanic) args() []string { return []string{"-no-reboot"} }

// serialConsole is the first serial port, for the kernel log, on QEMU's
// standard output.
type serialConsole struct{}

func (serialConsole) args() []string {
	return []string{"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"}
}

// virtioPort is the connection to init, through a socket on which the host
// listens.
type virtioPort struct{ socket string }

func (p virtioPort) args() []string {
	return []string{
		"-chardev", "socket,id=port,path=" + escape(p.socket),
		"-device", "virtio-serial-pci",
		"-device", "virtserialport,nr=1,chardev=port,name=" + wire.PortName,
	}
}

// bootImage is a kernel with its initial RAM file system and parameters.
type bootImage struct {
	kernel, initrd string
	params         []string
}

func (b bootImage) args() []string {
	return []string{"-kernel", b.kernel, "-initrd", b.initrd, "-append", strings.Join(b.params, " ")}
}

// params are those of every guest. Marker is not the kernel's: it goes on to
// init as an environment variable.
var params = []string{
	"console=ttyS0",
	"panic=-1",
	"mitigations=off",
	"tsc=reliable",
	"random.trust_cpu=on",
	// The crypto self-tests are a third of all instructions from the start of
	// Debian's 6.12 to init: 1.05 G without, 1.57 G with them.
	"cryptomgr.notests",
	wire.Marker + "=1",
}

// escape doubles commas, as QEMU's options want it.
func escape(s string) string {
	return strings.ReplaceAll(s, ",", ",,")
}

func machineArgs(devices ...device) []string {
	var args []string
	for _, d := range devices {
		args = append(args, d.args()...)
	}
	return args
}

// FindQEMU returns the emulator's path, or an error that wraps [ErrNoQEMU].
func FindQEMU() (string, error) {
	path, err := exec.LookPath(emulator)
	if err == nil {
		return path, nil
	}
	hint := "install it with your package manager"
	if runtime.GOOS == "linux" {
		hint = "on Debian: apt-get install qemu-system-x86"
	}
	return "", fmt.Errorf("%w (%s)", ErrNoQEMU, hint)
}
