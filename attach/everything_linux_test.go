package attach_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/link"
	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/attach"
)

// tracingMultiInfo is struct bpf_link_info for links by BTF ids
// (include/uapi/linux/bpf.h).
type tracingMultiInfo struct {
	typ, id, prog, _          uint32
	attachType, count, btf, _ uint32
	idsAt, addrsAt, cookiesAt uint64
	ids                       []uint32
	addrs, cookies            []uint64
}

// kernelSide asks the kernel which addresses a link is on, by cookie.
func kernelSide(t *testing.T, l link.Link) map[uint64]uint64 {
	t.Helper()
	const objGetInfoByFD = 15
	var info tracingMultiInfo
	get := func() {
		attr := struct {
			fd, size uint32
			info     unsafe.Pointer
		}{uint32(l.(interface{ FD() int }).FD()), uint32(unsafe.Offsetof(info.ids)), unsafe.Pointer(&info)}
		_, _, errno := unix.Syscall(unix.SYS_BPF, objGetInfoByFD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		qt.Assert(t, qt.Equals(errno, 0))
	}
	get()
	n := info.count
	info.ids, info.addrs, info.cookies = make([]uint32, n), make([]uint64, n), make([]uint64, n)
	var pin runtime.Pinner
	defer pin.Unpin()
	at := func(p any, ptr unsafe.Pointer) uint64 {
		pin.Pin(p)
		return uint64(uintptr(ptr))
	}
	info.idsAt = at(&info.ids[0], unsafe.Pointer(&info.ids[0]))
	info.addrsAt = at(&info.addrs[0], unsafe.Pointer(&info.addrs[0]))
	info.cookiesAt = at(&info.cookies[0], unsafe.Pointer(&info.cookies[0]))
	get()
	byCookie := make(map[uint64]uint64, n)
	for i, cookie := range info.cookies {
		byCookie[cookie] = info.addrs[i]
	}
	qt.Assert(t, qt.HasLen(byCookie, int(n)))
	return byCookie
}

// siteBehind is how far behind its entry a function's site may be: an endbr64.
const siteBehind = 4

// TestGuestEverything attaches everything by each mechanism that makes one link
// for many. By BTF the kernel is asked where it has attached to: to the
// functions that were meant. Without KALLSCOPE_LONG it is a part.
func TestGuestEverything(t *testing.T) {
	pattern := "vmlinux:tc*"
	if os.Getenv("KALLSCOPE_LONG") != "" {
		pattern = "*"
	}
	for _, m := range kallscope.Mechanisms() {
		if m.PerFunction() {
			continue
		}
		t.Run(m.String(), func(t *testing.T) {
			p := plan(t, m, pattern)
			k, err := kallscope.Live(kallscope.LiveOptions{})
			qt.Assert(t, qt.IsNil(err))
			before := enabledFunctions(t)
			programs, _ := cookieProgram(t, len(p.Targets))
			began := time.Now()
			att, err := attach.Attach(context.Background(), programs, p, attach.Options{Kernel: k})
			qt.Assert(t, qt.IsNil(err))
			attached := time.Since(began)
			defer att.Close()
			reasons := make(map[string]int)
			for _, r := range att.Refused() {
				if reasons[r.Reason.String()]++; r.Reason == kallscope.ReasonRefused && reasons["refused"] < 60 {
					fmt.Printf("%s: %s refused: %v\n", m, r.Target, r.Err)
				}
			}
			getppid(1000)
			if m.ByBTF() {
				wantMeant(t, p, att)
			}
			began = time.Now()
			qt.Assert(t, qt.IsNil(att.Close()))
			fmt.Printf("%s: %d of %d attached in %v by %d links and %d calls, detached in %v, refused %v\n",
				m, att.Attached(), len(p.Targets), attached, len(att.Links()), att.Calls(), time.Since(began), reasons)
			wantFunctions(t, before)
		})
	}
}

// wantMeant compares the kernel's addresses with the plan's.
func wantMeant(t *testing.T, p *kallscope.Plan, att *attach.Attachment) {
	t.Helper()
	compared := 0
	for _, l := range att.Links() {
		for cookie, addr := range kernelSide(t, l) {
			target := p.Targets[cookie-1]
			if addr-target.Addr > siteBehind {
				t.Errorf("%s at %#x is attached at %#x", target, target.Addr, addr)
			}
			compared++
		}
	}
	qt.Check(t, qt.Equals(compared, att.Attached()))
}
