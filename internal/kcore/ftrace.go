package kcore

import (
	"fmt"

	"github.com/kallscope/kallscope/internal/btfscan"
)

// maxFtracePages bounds the walk over a list that may change meanwhile: a page
// group holds at least some dozen records.
const maxFtracePages = 1 << 16

// maxFtraceRecords bounds the records of one group; vmlinux has 45,000 in all.
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
	for n := 0; page != 0; n++ {
		if n == maxFtracePages {
			return nil, fmt.Errorf("ftrace pages: the list does not end")
		}
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
	if count > maxFtraceRecords {
		return 0, nil, fmt.Errorf("%d records: not believable", count)
	}
	records := make([]byte, uint64(count)*uint64(l.record))
	if err := m.Read(m.order.Uint64(head[l.records:]), records); err != nil {
		return 0, nil, err
	}
	for ; len(records) > 0; records = records[l.record:] {
		sites = append(sites, m.order.Uint64(records[l.ip:]))
	}
	return m.order.Uint64(head[l.next:]), sites, nil
}
