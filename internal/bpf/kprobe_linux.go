package bpf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

const attachPerfEvent ebpf.AttachType = 41 // BPF_PERF_EVENT

// A KprobePMU opens perf events for single kprobes.
type KprobePMU struct {
	typ       uint32
	returnBit uint
}

// NewKprobePMU reads how the kernel numbers the perf events of kprobes. It fails
// with fs.ErrNotExist where it has none: before v4.17, or without
// CONFIG_KPROBE_EVENTS.
func NewKprobePMU() (*KprobePMU, error) {
	const dir = "/sys/bus/event_source/devices/kprobe/"
	typ, err := readNumber(dir+"type", "")
	if err != nil {
		return nil, err
	}
	bit, err := readNumber(dir+"format/retprobe", "config:")
	if err != nil {
		return nil, err
	}
	return &KprobePMU{typ: typ, returnBit: uint(bit)}, nil
}

func readNumber(path, prefix string) (uint32, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(string(text)), prefix), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return uint32(n), nil
}

// A ProbePoint is where a kprobe is.
type ProbePoint struct {
	// Addr is the address; zero when it is not known.
	Addr uint64
	// Name and Offset say the place when Addr is zero.
	Name   string
	Offset uint64
	// Return is for a probe that runs when the function returns.
	Return bool
}

// Open makes the probe, with no program on it, as a perf event, whose file
// descriptor it returns. The error is the kernel's number.
func (p *KprobePMU) Open(at ProbePoint) (int, error) {
	attr := unix.PerfEventAttr{Type: p.typ, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
	if at.Return {
		attr.Config = 1 << p.returnBit
	}
	// config1 is the name and config2 the offset, or without a name the
	// address (perf_kprobe_init() in kernel/trace/trace_event_perf.c).
	if at.Addr != 0 {
		attr.Ext2 = at.Addr
	} else {
		name, err := unix.BytePtrFromString(at.Name)
		if err != nil {
			return -1, err
		}
		var pin runtime.Pinner
		pin.Pin(name)
		defer pin.Unpin()
		attr.Ext1, attr.Ext2 = uint64(uintptr(unsafe.Pointer(name))), at.Offset
	}
	// The event of one CPU is enough: a program on it runs on all of them
	// (kprobe_perf_func() in kernel/trace/trace_kprobe.c).
	return unix.PerfEventOpen(&attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
}

// LinkKprobe attaches a program to a perf event, which from then on belongs to
// the link. Where the kernel has no such links (before v5.15) there is no
// cookie, and the link can only be closed.
func LinkKprobe(prog *ebpf.Program, fd int, cookie uint64, hasLinks bool) (link.Link, error) {
	if hasLinks {
		attr := perfEventAttr{linkAttr: newLinkAttr(prog, attachPerfEvent), cookie: cookie}
		attr.targetFD = uint32(fd)
		l, err := newLink(call(linkCreate, &attr))
		return l, errors.Join(err, unix.Close(fd)) // a link holds the event
	}
	err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, prog.FD())
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &event{fd: fd}, nil
}

// HasKprobeLinks returns nil where a perf event takes a program by a link, with
// a cookie (v5.15), and else an error number.
func HasKprobeLinks(prog *ebpf.Program) error {
	attr := perfEventAttr{linkAttr: newLinkAttr(prog, attachPerfEvent)}
	attr.targetFD = ^uint32(0)
	_, err := call(linkCreate, &attr)
	if errors.Is(err, unix.EBADF) {
		return nil
	}
	return err
}
