package kallsyms

import "slices"

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

// run is a sequence of symbols of one module, up to the next run.
type run struct {
	start  uint32
	module uint32 // index in Table.modules
}

// builder collects the symbols of a table.
type builder struct {
	t       *Table
	open    *openChunk
	k       int    // symbols in the open chunk
	names   []byte // their names
	current []byte // module of the last symbol
	modules map[string]uint32
}

// openChunk has the columns of the chunk that is being filled.
type openChunk struct {
	addr [chunkLen]uint64
	end  [chunkLen]uint32
	typ  [chunkLen]byte
}

// add appends the symbol that w describes.
func (b *builder) add(buf []byte, w *words) {
	if b.k == len(b.open.addr) {
		b.flush()
	}
	if w.moduleEnd > w.module || len(b.current) > 0 {
		b.setModule(buf[w.module:w.moduleEnd])
	}
	b.addName(buf, w.name, w.nameEnd)
	k := b.k & chunkMask
	b.open.addr[k] = w.addr
	b.open.typ[k] = w.typ
	b.open.end[k] = uint32(len(b.names))
	b.k++
}

// addName appends buf[from:to] to the names. Nearly all are short: copying 32
// bytes whatever the length costs less than deciding how many to copy.
func (b *builder) addName(buf []byte, from, to int) {
	n := len(b.names)
	if to-from <= 32 && from+32 <= len(buf) && n+32 <= cap(b.names) {
		*(*[32]byte)(b.names[n : n+32]) = [32]byte(buf[from:])
		b.names = b.names[:n+to-from]
		return
	}
	b.names = append(b.names, buf[from:to]...)
}

// flush makes the open chunk part of the table.
func (b *builder) flush() {
	t, open := b.t, b.open
	c := chunk{
		addr:  exact(open.addr[:b.k]),
		end:   exact(open.end[:b.k]),
		typ:   exact(open.typ[:b.k]),
		names: exact(b.names),
	}
	t.chunks = append(t.chunks, c)
	t.n += b.k
	t.tally(&c)
	b.k, b.names = 0, b.names[:0]
}

// exact returns a copy of s without spare room; slices.Clone may leave some.
func exact[T any](s []T) []T {
	c := make([]T, len(s))
	copy(c, s)
	return c
}

// tally counts what State needs.
func (t *Table) tally(c *chunk) {
	for k, typ := range c.typ {
		zero := c.addr[k] == 0
		switch {
		case IsText(typ) && zero:
			t.text++
			t.zeroText++
			t.zero++
		case IsText(typ):
			t.text++
		case zero:
			t.zero++
		}
	}
}

// setModule begins a run if the next symbol has another module than the last.
func (b *builder) setModule(module []byte) {
	if string(module) == string(b.current) {
		return
	}
	b.current = append(b.current[:0], module...)
	b.startRun()
}

func (b *builder) startRun() {
	n, ok := b.modules[string(b.current)]
	if !ok {
		n = uint32(len(b.t.modules))
		b.t.modules = append(b.t.modules, string(b.current))
		b.modules[b.t.modules[n]] = n
	}
	b.t.runs = append(b.t.runs, run{start: uint32(b.t.n + b.k), module: n})
}

// newBuilder returns a builder whose first run is vmlinux, perhaps empty.
func newBuilder() *builder {
	b := &builder{t: new(Table), open: new(openChunk), modules: make(map[string]uint32)}
	b.startRun()
	return b
}

// newBuilderFrom returns a builder that goes on behind the last symbol of t.
func newBuilderFrom(t *Table) *builder {
	if len(t.runs) == 0 { // the zero Table
		return newBuilder()
	}
	b := &builder{t: new(Table), open: new(openChunk), modules: make(map[string]uint32)}
	whole := t.n >> chunkBits
	b.t.chunks = slices.Clone(t.chunks[:whole])
	b.t.n = whole << chunkBits
	for i := range b.t.chunks {
		b.t.tally(&b.t.chunks[i])
	}
	b.t.runs, b.t.modules = slices.Clone(t.runs), slices.Clone(t.modules)
	for n, module := range t.modules {
		b.modules[module] = uint32(n)
	}
	b.current = append(b.current, t.modules[t.runs[len(t.runs)-1].module]...)
	if whole < len(t.chunks) {
		last := &t.chunks[whole]
		b.k = copy(b.open.addr[:], last.addr)
		copy(b.open.end[:], last.end)
		copy(b.open.typ[:], last.typ)
		b.names = append(b.names, last.names...)
	}
	return b
}

// finish returns the table.
func (b *builder) finish() *Table {
	if b.k > 0 {
		b.flush()
	}
	b.t.chunks = slices.Clip(b.t.chunks)
	return b.t
}
