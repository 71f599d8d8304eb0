package kcore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope/kallsyms"
)

func bothOrders(t *testing.T, test func(*testing.T, *core)) {
	for _, order := range []byteOrder{binary.LittleEndian, binary.BigEndian} {
		t.Run(order.String(), func(t *testing.T) { test(t, newCore(order)) })
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	write := func(data []byte) string {
		path := filepath.Join(dir, "core")
		qt.Assert(t, qt.IsNil(os.WriteFile(path, data, 0o600)))
		return path
	}
	c := newCore(binary.LittleEndian)
	addr := c.words(0x1122334455667788)
	good := c.bytes()
	m, err := Open(write(good))
	qt.Assert(t, qt.IsNil(err))
	got, err := m.Uint64(addr)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(got, 0x1122334455667788))
	qt.Assert(t, qt.Equals(m.ByteOrder(), binary.ByteOrder(binary.LittleEndian)))
	qt.Assert(t, qt.IsNil(m.Close()))

	_, err = Open(filepath.Join(dir, "nosuch"))
	qt.Assert(t, qt.ErrorIs(err, os.ErrNotExist))
	for _, test := range []struct {
		name  string
		spoil func(b []byte) []byte
		want  string
	}{
		{"no ELF", func([]byte) []byte { return []byte("text") }, ".*core: .*"},
		{"a program", func(b []byte) []byte { b[16] = 2; return b }, ".*core: not a 64-bit core file"},
		{"headers cut", func(b []byte) []byte { return b[:100] }, ".*core: .*"},
		{"notes outside", func(b []byte) []byte { b[64+8], b[64+15] = 0xff, 0x7f; b[64+32] = 8; return b }, ".*core: notes: .*"},
	} {
		_, err := Open(write(test.spoil(bytes.Clone(good))))
		qt.Check(t, qt.ErrorMatches(err, test.want), qt.Commentf("%s", test.name))
	}
}

func TestRead(t *testing.T) {
	c := newCore(binary.LittleEndian)
	copy(c.mem, "0123456789")
	m := c.memory(t) // the memory is a whole page from here on
	end := base + uint64(len(c.mem))
	b := make([]byte, 4)
	qt.Assert(t, qt.IsNil(m.Read(base+3, b)))
	qt.Assert(t, qt.Equals(string(b), "3456"))
	qt.Assert(t, qt.IsNil(m.Read(end-4, b)))
	for _, addr := range []uint64{0, base - 1, end - 3, end, end + 1, ^uint64(0), ^uint64(0) - 1} {
		qt.Check(t, qt.ErrorIs(m.Read(addr, b), ErrUnmapped), qt.Commentf("%#x", addr))
	}
	cut := c.bytes()
	m, err := newMemory(bytes.NewReader(cut[:len(cut)-2]))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.ErrorIs(m.Read(end-4, b), io.EOF))
	_, err = m.Uint64(end)
	qt.Assert(t, qt.ErrorIs(err, ErrUnmapped))
}

func TestIDSet(t *testing.T) {
	bothOrders(t, func(t *testing.T, c *core) {
		set := func(words ...uint32) uint64 {
			var b []byte
			for _, w := range words {
				b = c.order.AppendUint32(b, w)
			}
			return c.put(b)
		}
		good, empty := set(3, 10, 20, 30), set(0)
		many, outside := set(maxIDSet+1), set(1000)
		m := c.memory(t)
		ids, err := m.IDSet(good)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.DeepEquals(ids, []uint32{10, 20, 30}))
		ids, err = m.IDSet(empty)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.HasLen(ids, 0))
		_, err = m.IDSet(many)
		qt.Assert(t, qt.ErrorMatches(err, "65537 ids: not believable"))
		_, err = m.IDSet(outside)
		qt.Assert(t, qt.ErrorIs(err, ErrUnmapped))
		_, err = m.IDSet(8)
		qt.Assert(t, qt.ErrorIs(err, ErrUnmapped))
	})
}

var vmlinux = []kallsyms.Symbol{
	{Addr: base, Type: 'T', Name: "_stext"},
	{Addr: base + 0x100, Type: 't', Name: "vfs_read"},
	{Addr: base + 0x7e00_0000, Type: 'D', Name: "far"},
}

func symbolsOf(t *kallsyms.Table) (symbols []kallsyms.Symbol) {
	for _, s := range t.All() {
		symbols = append(symbols, s)
	}
	return symbols
}

func TestSymbols(t *testing.T) {
	percpu := append([]kallsyms.Symbol{{Addr: 0x1000, Type: 'A', Name: "fixed_percpu_data"}}, vmlinux[:2]...)
	for form, symbols := range map[addressForm][]kallsyms.Symbol{fromPlace: vmlinux[:2], fromBase: vmlinux, withPercpu: percpu} {
		t.Run(string(form), func(t *testing.T) {
			bothOrders(t, func(t *testing.T, c *core) {
				c.putSymbols(symbols, form)
				table, err := c.memory(t).Symbols()
				qt.Assert(t, qt.IsNil(err))
				qt.Assert(t, qt.DeepEquals(symbolsOf(table), symbols))
			})
		})
	}
}

func TestSymbolsBad(t *testing.T) {
	for _, test := range []struct {
		name     string
		old, new string // in the notes
		want     string
	}{
		{"no note", "(kallsyms_names)", "(other)", "the notes of /proc/kcore do not say where the symbols are"},
		{"no number", "_names)=f", "_names)=x", `notes of /proc/kcore: kallsyms_names: .*invalid syntax`},
		{"count outside", "_num_syms)=f", "_num_syms)=0", "symbol table in memory: kallsyms_num_syms: .*not in kernel memory"},
		{"names end in front of themselves", "_token_table)=ffffffff81", "_token_table)=ffffffff80", "symbol table in memory: kallsyms_names has .* bytes: not believable"},
		{"offsets outside", "_offsets)=f", "_offsets)=0", "symbol table in memory: kallsyms_offsets: .*not in kernel memory"},
		{"base outside", "_base)=f", "_base)=0", "symbol table in memory: kallsyms_relative_base: .*not in kernel memory"},
		{"index far away", "_index)=f", "_index)=0", "symbol table in memory: kallsyms_token_table has .* bytes: not believable"},
		{"elsewhere", "_stext)=ffffffff81", "_stext)=ffffffff82", "symbol table in memory: _stext is at 0xffffffff81000000, the notes say 0xffffffff82000000"},
		{"nothing to check by", "(_stext)", "(other)", "symbol table in memory: no _stext to check it by"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCore(binary.LittleEndian)
			c.putSymbols(vmlinux, fromBase)
			notes := strings.Replace(c.notes.String(), test.old, test.new, 1)
			qt.Assert(t, qt.Not(qt.Equals(notes, c.notes.String())))
			c.notes.Reset()
			c.notes.WriteString(notes)
			_, err := c.memory(t).Symbols()
			qt.Assert(t, qt.ErrorMatches(err, test.want))
		})
	}
	c := newCore(binary.LittleEndian)
	c.note("kallsyms_num_syms", c.put([]byte{1, 0, 0, 1}))
	c.note("kallsyms_names", c.words(0))
	_, err := c.memory(t).Symbols()
	qt.Assert(t, qt.ErrorMatches(err, "symbol table in memory: 16777217 symbols: not believable"))

	c = newCore(binary.LittleEndian)
	c.putSymbols(vmlinux, fromBase)
	cut := c.bytes()
	m, err := newMemory(bytes.NewReader(cut[:len(cut)-pageSize+500]))
	qt.Assert(t, qt.IsNil(err))
	_, err = m.Symbols()
	qt.Assert(t, qt.ErrorIs(err, io.EOF))
}

func TestSites(t *testing.T) {
	bothOrders(t, func(t *testing.T, c *core) {
		b := kernelTypes(t)
		head, _ := c.putPages([]uint64{base + 4, base + 0x104}, nil, []uint64{0xffffffffc0000004})
		none := c.words(0)
		m := c.memory(t)
		got, err := m.Sites(head, b)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.DeepEquals(got, []uint64{base + 4, base + 0x104, 0xffffffffc0000004}))
		got, err = m.Sites(none, b)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.HasLen(got, 0))
		_, err = m.Sites(16, b)
		qt.Assert(t, qt.ErrorMatches(err, "ftrace_pages_start: .*"))
	})
}

func TestSitesBad(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(c *core, pages []uint64)
		want  string
	}{
		{"cycle", func(c *core, p []uint64) { c.set(p[1], p[0]) }, "ftrace page 2: the list does not end"},
		{"own next", func(c *core, p []uint64) { c.set(p[1], p[1]) }, "ftrace page 2: the list does not end"},
		{"many records", func(c *core, p []uint64) { c.set(p[1]+16, maxFtraceRecords) }, "ftrace page 1: 1048576 records: not believable"},
		{"records outside", func(c *core, p []uint64) { c.set(p[1]+16, maxFtraceRecords-2) }, "ftrace page 1: read 16777184 bytes at .*: address is not in kernel memory"},
		{"page outside", func(c *core, p []uint64) { c.set(p[0], 0x1000) }, "ftrace page 1: read 32 bytes at 0x1000: address is not in kernel memory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCore(binary.LittleEndian)
			head, pages := c.putPages([]uint64{1, 2}, []uint64{3})
			test.spoil(c, pages)
			sites, err := c.memory(t).Sites(head, kernelTypes(t))
			qt.Check(t, qt.IsNil(sites))
			qt.Check(t, qt.ErrorMatches(err, test.want))
		})
	}
	c := newCore(binary.LittleEndian)
	head, _ := c.putPages([]uint64{1})
	m := c.memory(t)
	_, err := m.Sites(head, parseTypes(t, &btf.Int{Name: "int", Size: 4}))
	qt.Assert(t, qt.ErrorMatches(err, "the kernel's BTF has no usable member next"))
	huge := &btf.Struct{Name: "ftrace_page", Size: 1 << 31, Members: []btf.Member{{Name: "next", Type: &btf.Int{Name: "long", Size: 8}}}}
	_, err = m.Sites(head, parseTypes(t, huge))
	qt.Assert(t, qt.ErrorMatches(err, "the kernel's BTF has no usable member next"))
}

var testModules = []testModule{
	{"fuse", 0, []kallsyms.Symbol{{Addr: 0xffffffffc0000000, Type: 't', Name: "fuse_open"}, {Addr: 0, Type: 'U', Name: ""}, {Addr: 0xffffffffc0000010, Type: 'T', Name: "fuse_exit"}}},
	{"unformed", stateUnformed, []kallsyms.Symbol{{Addr: 1, Type: 't', Name: "x"}}},
	{"going", 2, []kallsyms.Symbol{{Addr: 0xffffffffc0001000, Type: 'D', Name: "data"}}},
	{"empty", 0, nil},
}

const testModulesText = "ffffffffc0000000 t fuse_open\t[fuse]\nffffffffc0000010 t fuse_exit\t[fuse]\nffffffffc0001000 d data\t[going]\n"

func TestModules(t *testing.T) {
	bothOrders(t, func(t *testing.T, c *core) {
		head, _ := c.putModules(testModules...)
		m, b := c.memory(t), kernelTypes(t)
		w, err := m.Modules(head, b)
		qt.Assert(t, qt.IsNil(err))
		text, err := io.ReadAll(w)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(string(text), testModulesText))

		w, err = m.Modules(head, b)
		qt.Assert(t, qt.IsNil(err))
		w.Keep = func(mod *Module) (bool, error) {
			names, err := mod.Strings()
			return mod.Live && bytes.Contains(names, []byte("\x00fuse_exit\x00")), err
		}
		text, err = io.ReadAll(iotestOneByte{w})
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.IsTrue(strings.HasPrefix(testModulesText, string(text)) && strings.Count(string(text), "\n") == 2))

		w, err = m.Modules(head, b)
		qt.Assert(t, qt.IsNil(err))
		w.Keep = func(*Module) (bool, error) { return false, errors.New("no") }
		_, err = io.ReadAll(w)
		qt.Assert(t, qt.ErrorMatches(err, "no"))
	})
}

// iotestOneByte reads one byte at a time.
type iotestOneByte struct{ r io.Reader }

func (r iotestOneByte) Read(p []byte) (int, error) { return r.r.Read(p[:min(len(p), 1)]) }

func TestModulesBad(t *testing.T) {
	tables := func(c *core, node uint64) uint64 { return c.order.Uint64(c.mem[node+24+moduleNameLen-base:]) }
	for _, test := range []struct {
		name  string
		spoil func(c *core, nodes []uint64)
		want  string
	}{
		{"cycle past the head", func(c *core, n []uint64) { c.set(n[3]+8, n[1]+8) }, "modules: the list does not end"},
		{"node outside", func(c *core, n []uint64) { c.set(n[1]+8, 0x1000) }, "modules: read 88 bytes at 0xff8: address is not in kernel memory"},
		{"tables outside", func(c *core, n []uint64) { c.set(n[0]+24+moduleNameLen, 0x1000) }, "module fuse: read 32 bytes at 0x1000: .*"},
		{"many symbols", func(c *core, n []uint64) { c.set(tables(c, n[0])+8, maxSymbols+1) }, "module fuse: 4194305 symbols: not believable"},
		{"symbols outside", func(c *core, n []uint64) { c.set(tables(c, n[0])+8, maxSymbols) }, "module fuse: read 100663296 bytes at .*: address is not in kernel memory"},
		{"types outside", func(c *core, n []uint64) { c.set(tables(c, n[0])+24, 0x1000) }, "module fuse: read 3 bytes at 0x1000: .*"},
		{"strings outside", func(c *core, n []uint64) { c.set(tables(c, n[0])+16, 0x1000) }, "module fuse: read .* bytes at 0x1000: .*"},
		{"long strings", func(c *core, n []uint64) { c.set(c.order.Uint64(c.mem[tables(c, n[0])-base:]), maxStrings+1) }, "module fuse: string table of 268435457 bytes: not believable"},
		{"name outside", func(c *core, n []uint64) { c.set(c.order.Uint64(c.mem[tables(c, n[0])-base:]), 1<<20) }, "module fuse: read 1048577 bytes at .*: address is not in kernel memory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCore(binary.LittleEndian)
			head, nodes := c.putModules(testModules...)
			test.spoil(c, nodes)
			w, err := c.memory(t).Modules(head, kernelTypes(t))
			qt.Assert(t, qt.IsNil(err))
			_, err = io.ReadAll(w)
			qt.Assert(t, qt.ErrorMatches(err, test.want))
		})
	}
	m := newCore(binary.LittleEndian).memory(t)
	_, err := m.Modules(16, kernelTypes(t))
	qt.Assert(t, qt.ErrorMatches(err, "modules: .*not in kernel memory"))
	_, err = m.Modules(base, parseTypes(t, &btf.Int{Name: "int", Size: 4}))
	qt.Assert(t, qt.ErrorMatches(err, "the kernel's BTF has no usable member state"))
}

// TestModuleStringsAtTheEdge: the string table may end with the page that the
// memory ends with, in front of the longest name that there could be.
func TestModuleStringsAtTheEdge(t *testing.T) {
	for pad := range 16 {
		c := newCore(binary.LittleEndian)
		head, nodes := c.putModules(testModules[0])
		tables := c.order.Uint64(c.mem[nodes[0]+24+moduleNameLen-base:])
		strtab := []byte("\x00fuse_open\x00\x00fuse_exit\x00")
		strtab = append(strtab, make([]byte, pad)...)
		c.mem = append(c.mem, make([]byte, -(len(c.mem)+len(strtab))&(pageSize-1))...)
		c.set(tables+16, base+uint64(len(c.mem)))
		c.mem = append(c.mem, strtab...)
		w, err := c.memory(t).Modules(head, kernelTypes(t))
		qt.Assert(t, qt.IsNil(err))
		text, err := io.ReadAll(w)
		qt.Assert(t, qt.IsNil(err), qt.Commentf("%d bytes behind", pad))
		qt.Assert(t, qt.Equals(string(text), testModulesText[:strings.Index(testModulesText, "ffffffffc0001000")]))
	}
}

// TestModuleLoadedOnce: a table that could not be read is not taken for an
// empty one the next time.
func TestModuleLoadedOnce(t *testing.T) {
	c := newCore(binary.LittleEndian)
	head, nodes := c.putModules(testModules[0])
	tables := c.order.Uint64(c.mem[nodes[0]+24+moduleNameLen-base:])
	c.set(tables+16, 0x1000)
	w, err := c.memory(t).Modules(head, kernelTypes(t))
	qt.Assert(t, qt.IsNil(err))
	mod, err := w.Next()
	qt.Assert(t, qt.IsNil(err))
	for range 2 {
		_, err = mod.Strings()
		qt.Assert(t, qt.ErrorIs(err, ErrUnmapped))
	}
}

// wholeCore has everything that is read.
func wholeCore(order byteOrder, form addressForm) (data []byte, pages, modules uint64) {
	c := newCore(order)
	pages, _ = c.putPages([]uint64{base + 4, base + 0x104}, []uint64{0xffffffffc0000004})
	modules, _ = c.putModules(testModules...)
	c.putSymbols(vmlinux[:2], form)
	return c.bytes(), pages, modules
}

// FuzzCore reads everything there is to read of core files into which bytes have
// been written, and which have been cut.
func FuzzCore(f *testing.F) {
	types := kernelTypes(f)
	var cores [][]byte
	var pages, modules uint64
	for _, form := range []addressForm{fromPlace, fromBase, withPercpu} {
		var data []byte
		data, pages, modules = wholeCore(binary.LittleEndian, form)
		cores = append(cores, data)
	}
	f.Add(byte(0), uint16(0), []byte(nil), uint16(0))
	f.Add(byte(1), uint16(64+32), []byte("\xff\xff\xff\xff\xff\xff\xff\x7f"), uint16(0)) // size of the notes
	f.Add(byte(2), uint16(0), []byte(nil), uint16(3000))
	for at := range len(cores[0]) / 128 { // into every table
		f.Add(byte(at), uint16(128*at), []byte("\xff\xff\xff"), uint16(0))
	}
	f.Fuzz(func(t *testing.T, which byte, at uint16, patch []byte, cut uint16) {
		data := bytes.Clone(cores[int(which)%len(cores)])
		data = data[:len(data)-int(cut)%len(data)]
		copy(data[int(at)%len(data):], patch)
		m, err := newMemory(bytes.NewReader(data))
		if err != nil {
			return
		}
		if table, err := m.Symbols(); err == nil && len(table.ByName("_stext")) == 0 {
			t.Fatal("a table without _stext")
		}
		sites, err := m.Sites(pages, types)
		if err != nil && sites != nil || len(sites) > maxFtraceRecords {
			t.Fatalf("%d sites and %v", len(sites), err)
		}
		if w, err := m.Modules(modules, types); err == nil {
			checkLines(t, w)
		}
		if ids, err := m.IDSet(modules); err == nil && 4*len(ids) > len(data) {
			t.Fatalf("%d ids of %d bytes", len(ids), len(data))
		}
	})
}

// checkLines reads the symbols of modules up to an error: whole lines, each
// with its module.
func checkLines(t *testing.T, w *Modules) {
	text, err := io.ReadAll(w)
	if len(text) == 0 {
		return
	}
	if !bytes.HasSuffix(text, []byte("]\n")) || len(text) > 1<<20 {
		t.Fatalf("%d bytes, %v: %q", len(text), err, text[max(0, len(text)-100):])
	}
}

// TestWholeCore: the seeds of the fuzz test are good ones.
func TestWholeCore(t *testing.T) {
	for _, form := range []addressForm{fromPlace, fromBase, withPercpu} {
		data, pages, modules := wholeCore(binary.BigEndian, form)
		m, err := newMemory(bytes.NewReader(data))
		qt.Assert(t, qt.IsNil(err))
		table, err := m.Symbols()
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.DeepEquals(symbolsOf(table), vmlinux[:2]))
		sites, err := m.Sites(pages, kernelTypes(t))
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(fmt.Sprintf("%x", sites), "[ffffffff81000004 ffffffff81000104 ffffffffc0000004]"))
		w, err := m.Modules(modules, kernelTypes(t))
		qt.Assert(t, qt.IsNil(err))
		text, err := io.ReadAll(w)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(string(text), testModulesText))
	}
}
