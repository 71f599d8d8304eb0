package kallsyms

import (
	"errors"
	"slices"
)

// A table is built in chunks of chunkLen symbols. The size of /proc/kallsyms
// is not known before it has been read; a slice that grows by copying would
// need twice the memory at its peak, chunks need one chunk more than the
// table.
const (
	chunkBits = 12
	chunkLen  = 1 << chunkBits
	chunkMask = chunkLen - 1
)

// chunk holds up to chunkLen symbols, one column for each property. Name i is
// names[end[i-1]:end[i]].
type chunk struct {
	addr  []uint64
	end   []uint32
	typ   []byte
	names []byte
}

// name returns name k without copying it.
func (c *chunk) name(k int) []byte {
	from := uint32(0)
	if k > 0 {
		from = c.end[k-1]
	}
	return c.names[from:c.end[k]]
}

// clone returns a copy that is no larger than necessary.
func (c *chunk) clone() chunk {
	return chunk{
		addr:  exact(c.addr),
		end:   exact(c.end),
		typ:   exact(c.typ),
		names: exact(c.names),
	}
}

// exact returns a copy of s without spare room; slices.Clone may leave some.
func exact[T any](s []T) []T {
	c := make([]T, len(s))
	copy(c, s)
	return c
}

func (c *chunk) reset() {
	c.addr, c.end, c.typ, c.names = c.addr[:0], c.end[:0], c.typ[:0], c.names[:0]
}

// run is a sequence of symbols of one module, up to the next run.
type run struct {
	start  uint32
	module uint32 // index in Table.modules
}

// builder collects the symbols of a table.
type builder struct {
	t       Table
	open    chunk // reused for each chunk
	current []byte
	modules map[string]uint32
}

// add appends the symbol in l.
func (b *builder) add(l *Line) {
	if len(b.t.runs) == 0 || string(l.Module) != string(b.current) {
		b.startRun(l.Module)
	}
	c := &b.open
	c.addr = append(c.addr, l.Addr)
	c.typ = append(c.typ, l.Type)
	c.names = append(c.names, l.Name...)
	c.end = append(c.end, uint32(len(c.names)))
	b.t.n++
	if l.Addr == 0 {
		b.t.zero++
	}
	if IsText(l.Type) {
		b.t.text++
		if l.Addr == 0 {
			b.t.zeroText++
		}
	}
	if len(c.addr) == chunkLen {
		b.flush()
	}
}

func (b *builder) flush() {
	b.t.chunks = append(b.t.chunks, b.open.clone())
	b.open.reset()
}

// startRun notes that the next symbol has another module than the last one.
func (b *builder) startRun(module []byte) {
	b.current = append(b.current[:0], module...)
	n, ok := b.modules[string(module)]
	if !ok {
		if b.modules == nil {
			b.modules = make(map[string]uint32)
		}
		n = uint32(len(b.t.modules))
		b.t.modules = append(b.t.modules, string(module))
		b.modules[b.t.modules[n]] = n
	}
	b.t.runs = append(b.t.runs, run{start: uint32(b.t.n), module: n})
}

// finish returns the table with what the scanner knows beside the symbols.
func (b *builder) finish(s *Scanner) *Table {
	if len(b.open.addr) > 0 {
		b.flush()
	}
	t := &b.t
	t.chunks = slices.Clip(t.chunks)
	t.lines, t.mapping, t.skipped = s.number, s.mapping, s.skipped
	t.warnings, t.stopped = s.warnings, s.stopped
	t.truncated = errors.Is(s.err, ErrTruncated)
	return t
}
