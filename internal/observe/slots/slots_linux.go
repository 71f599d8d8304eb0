package slots

import (
	"fmt"
	"os"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Fill writes the table into a mappable array map whose one value has Len times
// 4 bytes.
func (t *Table) Fill(m *ebpf.Map) error {
	if t.n == 0 {
		return nil
	}
	page := os.Getpagesize()
	size := (t.n*4 + page - 1) / page * page
	mem, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map the table of slots: %w", err)
	}
	t.put(unsafe.Slice((*uint32)(unsafe.Pointer(&mem[0])), size/4))
	return unix.Munmap(mem)
}
