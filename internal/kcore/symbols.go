package kcore

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/kallscope/kallscope/kallsyms"
)

// Bounds of what is believed of the symbol table: Debian's 7.3 has 200,000
// symbols of 12 bytes.
const (
	maxVmlinuxSymbols = 1 << 24
	maxTable          = 1 << 28
)

// Symbols decodes the symbols of vmlinux where the kernel keeps them. The notes
// of /proc/kcore say where that is from v6.0 on (kernel/vmcore_info.c,
// CONFIG_CRASH_CORE). The addresses are the kernel's whatever kallsyms shows;
// the caller compares.
func (m *Memory) Symbols() (*kallsyms.Table, error) {
	vars, err := m.coreInfo()
	if err != nil {
		return nil, err
	}
	r := symbolReader{Memory: m, vars: vars}
	e := kallsyms.Encoded{Order: m.order}
	e.Count = r.count()
	e.Names = r.between("kallsyms_names", "kallsyms_token_table")
	e.TokenTable = r.between("kallsyms_token_table", "kallsyms_token_index")
	e.TokenIndex = r.bytes("kallsyms_token_index", 512)
	e.Addr = r.addresses(e.Count)
	if r.err != nil {
		return nil, r.err
	}
	table, err := e.Table()
	if err != nil {
		return nil, err
	}
	return table, r.check(table)
}

// coreInfo returns the addresses of variables that the kernel notes for crash
// dumps, as lines SYMBOL(name)=hex.
func (m *Memory) coreInfo() (map[string]uint64, error) {
	vars := make(map[string]uint64)
	for line := range bytes.Lines(m.notes) {
		name, value, ok := bytes.Cut(bytes.TrimSpace(line), []byte(")="))
		name, isSymbol := bytes.CutPrefix(name, []byte("SYMBOL("))
		if !ok || !isSymbol {
			continue
		}
		addr, err := strconv.ParseUint(string(value), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("notes of /proc/kcore: %s: %w", name, err)
		}
		vars[string(name)] = addr
	}
	if vars["kallsyms_names"] == 0 {
		return nil, errors.New("the notes of /proc/kcore do not say where the symbols are")
	}
	return vars, nil
}

// symbolReader reads variables of the symbol table; the first error stays.
type symbolReader struct {
	*Memory
	vars map[string]uint64
	err  error
}

func (r *symbolReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("symbol table in memory: "+format, args...)
	}
}

func (r *symbolReader) bytes(name string, n uint64) []byte {
	if r.err != nil {
		return nil
	}
	if n > maxTable {
		r.fail("%s has %d bytes: not believable", name, n)
		return nil
	}
	b, err := r.take(r.vars[name], n)
	if err != nil {
		r.fail("%s: %w", name, err)
	}
	return b
}

// between reads a variable whose size is not told, up to one behind it.
func (r *symbolReader) between(name, next string) []byte {
	return r.bytes(name, r.vars[next]-r.vars[name])
}

func (r *symbolReader) count() int {
	b := r.bytes("kallsyms_num_syms", 4)
	if r.err != nil {
		return 0
	}
	n := r.order.Uint32(b)
	if n > maxVmlinuxSymbols {
		r.fail("%d symbols: not believable", n)
	}
	return int(n)
}

// addresses returns the address of each symbol. The kernel keeps four bytes for
// each (kallsyms_sym_address() in kernel/kallsyms.c):
//   - from v7.0 on the distance from where these bytes lie;
//   - before, the distance from kallsyms_relative_base;
//   - with CONFIG_KALLSYMS_ABSOLUTE_PERCPU (x86 before v6.15) what is not
//     negative is the address itself, and the rest counts down from the base.
func (r *symbolReader) addresses(count int) func(i int) uint64 {
	offsets := r.bytes("kallsyms_offsets", 4*uint64(count))
	at := func(i int) uint32 { return r.order.Uint32(offsets[4*i:]) }
	if r.vars["kallsyms_relative_base"] == 0 {
		place := r.vars["kallsyms_offsets"]
		return func(i int) uint64 { return place + 4*uint64(i) + uint64(int32(at(i))) }
	}
	b := r.bytes("kallsyms_relative_base", 8)
	if r.err != nil {
		return nil
	}
	base := r.order.Uint64(b)
	for i := range count {
		if int32(at(i)) < 0 {
			return func(i int) uint64 { return percpuAddress(at(i), base) }
		}
	}
	return func(i int) uint64 { return base + uint64(at(i)) }
}

func percpuAddress(offset uint32, base uint64) uint64 {
	if int32(offset) >= 0 {
		return uint64(offset)
	}
	return base - 1 - uint64(int32(offset))
}

// check compares with an address that the notes tell.
func (r *symbolReader) check(t *kallsyms.Table) error {
	want, ok := r.vars["_stext"]
	for i := range t.Len() {
		if ok && t.Name(i) == "_stext" {
			if got := t.Addr(i); got != want {
				r.fail("_stext is at %#x, the notes say %#x", got, want)
			}
			return r.err
		}
	}
	r.fail("no _stext to check it by")
	return r.err
}
