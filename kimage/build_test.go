package kimage

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/kallscope/kallscope/kallsyms"
)

// layout is how scripts/kallsyms.c would write the tables.
type layout struct {
	old   bool // addresses in front of the names
	form  form // of the addresses
	seqs  bool // with the index by name
	align int
	order byteOrder
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

type form int

const (
	basePlain form = iota
	basePerCPU
	placeRelative
	absolute
)

func (l layout) String() string {
	return fmt.Sprintf("old %v, form %d, seqs %v, align %d, %v", l.old, l.form, l.seqs, l.align, l.order)
}

var modern = layout{form: basePlain, seqs: true, align: 8, order: binary.LittleEndian}

// A made kernel has these parts, as far from its beginning as the others allow.
const (
	rodataAt = 0x10000
	initAt   = 0x40000
	endAt    = 0x50000

	functions = 600
)

// made is a kernel that a test made.
type made struct {
	layout  layout
	base    uint64
	symbols []kallsyms.Symbol
	text    []byte
	rodata  []byte
	init    []byte
	// pointers are the places, from base on, that hold addresses.
	pointers []uint64
	sites    []uint64
	btf      []byte
}

const banner = "Linux version 6.12.0-made (nobody@nowhere) #1 SMP\n"

var buildIDNote = "\x04\x00\x00\x00\x04\x00\x00\x00\x03\x00\x00\x00GNU\x00\xca\xfe\xba\xbe"

// makeKernel makes a kernel that is linked for base.
func makeKernel(l layout, base uint64) *made {
	k := &made{layout: l, base: base, btf: makeBTF()}
	k.text = bytes.Repeat([]byte{0x90}, rodataAt)
	k.addInit()
	k.addSymbols(0)
	// The place of the tables does not depend on addresses, so it is known
	// after a first try.
	index := k.addRodata()
	k.addSymbols(base + rodataAt + uint64(index))
	k.addRodata()
	return k
}

func (k *made) fn(i int) uint64 { return k.base + 0x100 + 16*uint64(i) }

// addInit fills .init.data: sites of every other function, one of them dropped,
// and a blacklist of two functions.
func (k *made) addInit() {
	k.init = make([]byte, 64)
	k.pointer(0) // dropped
	for i := 0; i < functions; i += 2 {
		k.pointer(k.fn(i) + 4)
		k.sites = append(k.sites, k.fn(i)+4)
	}
	k.pointer(k.fn(5))
	k.pointer(k.fn(9))
}

func (k *made) pointer(v uint64) {
	if v != 0 {
		k.pointers = append(k.pointers, initAt+uint64(len(k.init)))
	}
	k.init = k.layout.order.AppendUint64(k.init, v)
}

func (k *made) addSymbols(index uint64) {
	k.symbols = nil
	add := func(addr uint64, typ byte, name string) {
		k.symbols = append(k.symbols, kallsyms.Symbol{Addr: addr, Type: typ, Name: name})
	}
	if k.layout.form == basePerCPU {
		for i := range 8 {
			add(uint64(i)*0x100, 'A', fmt.Sprintf("percpu_%d", i))
		}
	}
	add(k.base, 'T', "_text")
	add(k.base, 'T', "_stext")
	for i := range functions {
		add(k.fn(i), 't', fmt.Sprintf("fn_%d_%s", i, strings.Repeat("long", i%40)))
	}
	add(k.base+rodataAt-1, 'T', "_etext")
	add(k.base+rodataAt, 'R', "linux_banner")
	if index != 0 {
		add(index, 'r', "kallsyms_token_index")
	} else {
		add(k.base+rodataAt+1, 'r', "kallsyms_token_index")
	}
	init := k.base + initAt + 64
	sites := uint64(8 * (1 + functions/2))
	add(init, 'D', "__start_mcount_loc")
	add(init+sites, 'D', "__stop_mcount_loc")
	add(init+sites, 'D', "__start_kprobe_blacklist")
	add(init+sites+16, 'D', "__stop_kprobe_blacklist")
}

// addRodata fills .rodata with the banner and the tables, and returns where the
// token index is.
func (k *made) addRodata() (index int) {
	w := &writer{layout: k.layout, base: k.base, b: []byte(banner)}
	w.fill(64)
	if k.layout.old {
		w.addresses(k)
	}
	w.align()
	w.u32(uint32(len(k.symbols)))
	if k.layout.align == 8 {
		w.align()
	}
	markers := w.names(k.symbols)
	w.align()
	for _, m := range markers {
		w.u32(m)
	}
	w.align()
	if k.layout.old && k.layout.seqs {
		w.seqs(len(k.symbols))
	}
	index = w.tokens()
	if !k.layout.old {
		w.addresses(k)
		if k.layout.seqs {
			w.seqs(len(k.symbols))
		}
	}
	k.pointers = append(k.pointers[:1+functions/2+1:1+functions/2+1], w.pointers...)
	w.fill(len(w.b) + 256)
	k.rodata = w.b
	return index
}

type writer struct {
	layout   layout
	base     uint64
	b        []byte
	pointers []uint64
}

func (w *writer) u32(v uint32) { w.b = w.layout.order.AppendUint32(w.b, v) }
func (w *writer) u64(v uint64) { w.b = w.layout.order.AppendUint64(w.b, v) }
func (w *writer) fill(n int)   { w.b = append(w.b, make([]byte, n-len(w.b))...) }
func (w *writer) align()       { w.fill(roundUp(len(w.b), w.layout.align)) }

// tokenTexts are the strings of all tokens: what occurs in names, and others.
var tokenTexts = func() []string {
	texts := []string{"fn_", "long", "longlong", "__st", "kallsyms_"}
	for c := byte(' ' + 1); c < 0x7f; c++ {
		texts = append(texts, string(c))
	}
	for i := len(texts); i < tokenCount; i++ {
		texts = append(texts, fmt.Sprintf("%%%d", i))
	}
	return texts
}()

// names writes the symbols and returns the markers.
func (w *writer) names(symbols []kallsyms.Symbol) (markers []uint32) {
	start := len(w.b)
	for i, s := range symbols {
		if i%markerStep == 0 {
			markers = append(markers, uint32(len(w.b)-start))
		}
		var codes []byte
		for text := string(s.Type) + s.Name; text != ""; {
			best := -1
			for c, t := range tokenTexts {
				if strings.HasPrefix(text, t) && (best < 0 || len(t) > len(tokenTexts[best])) {
					best = c
				}
			}
			codes, text = append(codes, byte(best)), text[len(tokenTexts[best]):]
		}
		if n := len(codes); n < 128 {
			w.b = append(w.b, byte(n))
		} else {
			w.b = append(w.b, byte(n)|0x80, byte(n>>7))
		}
		w.b = append(w.b, codes...)
	}
	return markers
}

func (w *writer) tokens() (index int) {
	var at []int
	start := len(w.b)
	for _, t := range tokenTexts {
		at = append(at, len(w.b)-start)
		w.b = append(append(w.b, t...), 0)
	}
	w.align()
	index = len(w.b)
	for _, n := range at {
		w.b = w.layout.order.AppendUint16(w.b, uint16(n))
	}
	return index
}

// seqs are numbers of three bytes, in an order that says nothing.
func (w *writer) seqs(n int) {
	w.align()
	for i := range n {
		v := (i * 7919) % n
		w.b = append(w.b, byte(v>>16), byte(v>>8), byte(v))
	}
	w.align()
}

func (w *writer) addresses(k *made) {
	w.align()
	for _, s := range k.symbols {
		switch {
		case k.layout.form == absolute:
			w.pointers = append(w.pointers, rodataAt+uint64(len(w.b)))
			w.u64(s.Addr)
		case k.layout.form == placeRelative:
			w.u32(uint32(s.Addr - (k.base + rodataAt + uint64(len(w.b)))))
		case k.layout.form == basePlain:
			w.u32(uint32(s.Addr - k.base))
		case s.Type == 'A':
			w.u32(uint32(s.Addr))
		default:
			w.u32(uint32(k.base - 1 - s.Addr))
		}
	}
	if k.layout.form == absolute || k.layout.form == placeRelative {
		return
	}
	w.align()
	w.pointers = append(w.pointers, rodataAt+uint64(len(w.b)))
	w.u64(k.base)
}

func makeBTF() []byte {
	b, err := btf.NewBuilder(nil, nil)
	if err != nil {
		panic(err)
	}
	if _, err := b.Add(&btf.Func{Name: "fn_0_", Type: &btf.FuncProto{Return: &btf.Int{Name: "int", Size: 4}}}); err != nil {
		panic(err)
	}
	blob, err := b.Marshal(nil, nil)
	if err != nil {
		panic(err)
	}
	return blob
}

// elf returns the kernel as vmlinux.
func (k *made) elf() []byte {
	alloc := elf.SHF_ALLOC
	return writeELF(elf.ET_EXEC, k.layout.order, []elfSection{
		{name: ".text", typ: elf.SHT_PROGBITS, flags: alloc | elf.SHF_EXECINSTR, addr: k.base, data: k.text},
		{name: ".rodata", typ: elf.SHT_PROGBITS, flags: alloc, addr: k.base + rodataAt, data: k.rodata},
		{name: ".notes", typ: elf.SHT_NOTE, flags: alloc, addr: k.base + initAt - 0x1000, data: []byte(buildIDNote)},
		{name: ".BTF", typ: elf.SHT_PROGBITS, flags: alloc, addr: k.base + initAt - 0x800, data: k.btf},
		{name: ".init.data", typ: elf.SHT_PROGBITS, flags: alloc | elf.SHF_WRITE, addr: k.base + initAt, data: k.init},
	})
}

// bare returns the kernel as arm64's Image, with relocations for all pointers
// in it. applied says whether the places hold their values as well.
func (k *made) bare(applied bool) []byte {
	b := bytes.Repeat([]byte{0xcc}, endAt) // code and data, as it were
	copy(b, k.text)
	copy(b[rodataAt:], k.rodata)
	copy(b[initAt:], k.init)
	copy(b[initAt-0x800:], k.btf)
	copy(b[56:], "ARM\x64")
	le := binary.LittleEndian
	slices.Sort(k.pointers)
	var rela []byte
	for _, at := range k.pointers {
		rela = le.AppendUint64(rela, k.base+at)
		rela = le.AppendUint64(rela, relativeARM64)
		rela = le.AppendUint64(rela, le.Uint64(b[at:]))
		if !applied {
			le.PutUint64(b[at:], 0)
		}
	}
	return append(append(b, rela...), make([]byte, 64)...)
}

type elfSection struct {
	name  string
	typ   elf.SectionType
	flags elf.SectionFlag
	addr  uint64
	data  []byte
	link  uint32
	info  uint32
}

// writeELF returns an ELF file with sections, numbered from 1, and their names.
func writeELF(typ elf.Type, order binary.ByteOrder, sections []elfSection) []byte {
	names := []byte{0}
	sections = append(slices.Clone(sections), elfSection{name: ".shstrtab", typ: elf.SHT_STRTAB})
	headers := []elf.Section64{{}}
	out := make([]byte, 64)
	for i, s := range sections {
		at := len(names)
		names = append(append(names, s.name...), 0)
		if i == len(sections)-1 {
			s.data = names
		}
		headers = append(headers, elf.Section64{
			Name: uint32(at), Type: uint32(s.typ), Flags: uint64(s.flags), Addr: s.addr,
			Off: uint64(len(out)), Size: uint64(len(s.data)), Link: s.link, Info: s.info,
		})
		out = append(out, s.data...)
	}
	data, machine := elf.ELFDATA2LSB, elf.EM_X86_64
	if order == binary.BigEndian {
		data, machine = elf.ELFDATA2MSB, elf.EM_PPC64
	}
	h := elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(data), 1},
		Type:  uint16(typ), Machine: uint16(machine), Version: 1,
		Shoff: uint64(len(out)), Ehsize: 64, Shentsize: 64, Shnum: uint16(len(headers)), Shstrndx: uint16(len(headers) - 1),
	}
	var b bytes.Buffer
	for _, v := range append([]any{h}, toAny(headers)...) {
		if err := binary.Write(&b, order, v); err != nil {
			panic(err)
		}
	}
	copy(out, b.Bytes()[:64])
	return append(out, b.Bytes()[64:]...)
}

func toAny[T any](s []T) []any {
	out := make([]any, len(s))
	for i := range s {
		out[i] = s[i]
	}
	return out
}
