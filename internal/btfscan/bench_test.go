package btfscan

import (
	"bytes"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"
)

func kernelBTF(b *testing.B) *BTF {
	b.Helper()
	return mustParse(b, kernelBytes(b), nil)
}

// BenchmarkWalk is the floor: from type to type, nothing kept.
func BenchmarkWalk(b *testing.B) {
	x := kernelBTF(b)
	b.ReportAllocs()
	for b.Loop() {
		for off := 0; off < len(x.types); off += x.sizeAt(off) {
		}
	}
}

func BenchmarkScan(b *testing.B) {
	data := kernelBytes(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScanNames(b *testing.B) {
	data := kernelBytes(b)
	b.ReportAllocs()
	for b.Loop() {
		x, err := Parse(data, nil)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for f := range x.Funcs() {
			n += len(f.Name)
		}
	}
}

func BenchmarkOpenScanNames(b *testing.B) {
	kernelBytes(b) // or skip
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open(kernelPath, nil)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for f := range f.Funcs() {
			n += len(f.Name)
		}
		f.Close()
	}
}

func BenchmarkNames(b *testing.B) {
	x := kernelBTF(b)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for f := range x.Funcs() {
			n += len(f.Name)
		}
	}
}

// BenchmarkByNameFirst includes building what later look-ups use.
func BenchmarkByNameFirst(b *testing.B) {
	data := kernelBytes(b)
	b.ReportAllocs()
	for b.Loop() {
		if len(mustParse(b, data, nil).ByName("vfs_read")) == 0 {
			b.Fatal("not found")
		}
	}
}

func BenchmarkByName(b *testing.B) {
	sorted := kernelBTF(b)
	hashed := kernelBTF(b)
	hashed.sorted.get(func() bool { return false })
	for name, x := range map[string]*BTF{"sorted": sorted, "hashed": hashed} {
		b.Run(name, func(b *testing.B) {
			x.ByName("")
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				found := false
				for range x.Indexes(x.Func(i).Name) {
					found = true
				}
				if !found {
					b.Fatal(x.Func(i))
				}
				i = (i + 7919) % x.FuncCount()
			}
		})
	}
}

func BenchmarkIndexNames(b *testing.B) {
	x := kernelBTF(b)
	b.ReportAllocs()
	for b.Loop() {
		x.indexNames()
	}
}

func BenchmarkPrototypeAll(b *testing.B) {
	x := kernelBTF(b)
	b.ReportAllocs()
	for b.Loop() {
		var buf []byte
		for f := range x.Funcs() {
			var err error
			if buf, err = x.AppendPrototype(buf[:0], f); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkShapeAll(b *testing.B) {
	x := kernelBTF(b)
	b.ReportAllocs()
	for b.Loop() {
		var s Shape
		for f := range x.Funcs() {
			if err := x.ShapeInto(f.Proto, &s); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkShapeFirst includes the tables that later calls use.
func BenchmarkShapeFirst(b *testing.B) {
	data := kernelBytes(b)
	b.ReportAllocs()
	for b.Loop() {
		x := mustParse(b, data, nil)
		var s Shape
		for f := range x.Funcs() {
			if err := x.ShapeInto(f.Proto, &s); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkQueryAll(b *testing.B) {
	x := kernelBTF(b)
	b.ReportAllocs()
	for b.Loop() {
		q, err := NewTypeQuery("struct sk_buff *")
		qt.Assert(b, qt.IsNil(err))
		for f := range x.Funcs() {
			if _, err := q.FindParam(x, f.Proto); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkHasEnumerator(b *testing.B) {
	x := kernelBTF(b)
	for _, name := range []string{"BPF_PROG_TYPE_KPROBE", "KALLSCOPE_NO_SUCH_VALUE"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				x.HasEnumerator(name)
			}
		})
	}
}

// BenchmarkTwin is what cilium/ebpf needs for the same.
func BenchmarkTwin(b *testing.B) {
	data := kernelBytes(b)
	load := func() *btf.Spec {
		spec, err := btf.LoadSpecFromReader(bytes.NewReader(data))
		qt.Assert(b, qt.IsNil(err))
		return spec
	}
	b.Run("load", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			load()
		}
	})
	b.Run("funcs", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for typ, err := range load().All() {
				if err != nil {
					b.Fatal(err)
				}
				if fn, ok := typ.(*btf.Func); ok {
					_ = fn.Name
				}
			}
		}
	})
	b.Run("byname", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var fn *btf.Func
			if err := load().TypeByName("vfs_read", &fn); err != nil {
				b.Fatal(err)
			}
		}
	})
}
