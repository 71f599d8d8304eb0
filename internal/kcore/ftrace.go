package kcore

import (
	"fmt"

	"github.com/kallscope/kallscope/internal/btfscan"
)

// maxFtraceRecords bounds the records of all groups, and so what is read of a
// list that changes meanwhile; vmlinux has 45,000.
const maxFtraceRecords = 1 << 20

// Sites reads the addresses of all ftrace records: those of vmlinux and of
// modules, and the left-overs of weak functions. head is the address of the
// variable ftrace_pages_start (kernel/trace/ftrace.c), b the BTF of vmlinux.
// The order is the kernel's: vmlinux first, each group by address.
func (m *Memory) Sites(head uint64, b *btfscan.BTF) ([]uint64, error) {
	layout, err := ftraceLayoutOf(b)
	if err != nil {
		return nil, err
	}
	page, err := m.Uint64(head)
	if err != nil {
		return nil, fmt.Errorf("ftrace_pages_start: %w", err)
	}
	sites := make([]uint64, 0, 48<<10)
	seen := make(map[uint64]bool)
	for n := 0; page != 0; n++ {
		if seen[page] {
			return nil, fmt.Errorf("ftrace page %d: %w", n, errCycle)
		}
		seen[page] = true
		if page, sites, err = m.sitesOf(page, layout, sites); err != nil {
			return nil, fmt.Errorf("ftrace page %d: %w", n, err)
		}
	}
	return sites, nil
}

// ftraceLayout is where the fields of struct ftrace_page and struct dyn_ftrace
// are, in bytes.
type ftraceLayout struct {
	page                 uint32 // size
	next, records, index uint32
	record, ip           uint32 // size of a record, its address in it
}

func ftraceLayoutOf(b *btfscan.BTF) (l ftraceLayout, err error) {
	structs := b.Aggregates("ftrace_page", "dyn_ftrace")
	page, record := structs[0], structs[1]
	l.page, l.record = page.Size(), record.Size()
	return l, fields{
		{page, "next", 8, &l.next},
		{page, "records", 8, &l.records},
		{page, "index", 4, &l.index},
		{record, "ip", 8, &l.ip},
	}.find()
}

// sitesOf appends the addresses of one group of records and returns the next
// group.
func (m *Memory) sitesOf(page uint64, l ftraceLayout, sites []uint64) (uint64, []uint64, error) {
	head := make([]byte, l.page)
	if err := m.Read(page, head); err != nil {
		return 0, nil, err
	}
	count := m.order.Uint32(head[l.index:])
	if uint64(count)+uint64(len(sites)) > maxFtraceRecords {
		return 0, nil, fmt.Errorf("%d records: not believable", count)
	}
	records, err := m.take(m.order.Uint64(head[l.records:]), uint64(count)*uint64(l.record))
	if err != nil {
		return 0, nil, err
	}
	for ; len(records) > 0; records = records[l.record:] {
		sites = append(sites, m.order.Uint64(records[l.ip:]))
	}
	return m.order.Uint64(head[l.next:]), sites, nil
}
