package kallsyms

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
)

// perLine reports the time for each of n lines or look-ups.
func perLine(b *testing.B, n int, unit string) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/"+unit)
}

// BenchmarkFloor only looks for line ends: what any line reader has to do.
func BenchmarkFloor(b *testing.B) {
	text := kernelList(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = 0
		for rest := text; len(rest) > nameOff; n++ {
			rest = rest[nameOff+bytes.IndexByte(rest[nameOff:], '\n')+1:]
		}
	}
	perLine(b, n, "line")
}

// The whole buffer, and the streams that files and /proc give.
func BenchmarkScan(b *testing.B) {
	text := kernelList(b)
	for name, scanner := range map[string]func() *Scanner{
		"whole":   func() *Scanner { return newByteScanner(text, Options{}) },
		"lenient": func() *Scanner { return newByteScanner(text, Options{Lenient: true}) },
		"stream":  func() *Scanner { return NewScanner(bytes.NewReader(text), Options{}) },
		"pages":   func() *Scanner { return NewScanner(&pageReader{text}, Options{}) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				s := scanner()
				for n = 0; s.Scan(); n++ {
				}
				if s.Err() != nil {
					b.Fatal(s.Err())
				}
			}
			perLine(b, n, "line")
		})
	}
}

// pageReader returns whole lines of at most a page, as /proc/kallsyms does.
type pageReader struct{ rest []byte }

func (r *pageReader) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	page := r.rest[:min(4095, len(r.rest), len(b))]
	page = page[:bytes.LastIndexByte(page, '\n')+1]
	r.rest = r.rest[len(page):]
	return copy(b, page), nil
}

func BenchmarkTwin(b *testing.B) {
	text := kernelList(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		list, err := naive(bytes.NewReader(text))
		if err != nil {
			b.Fatal(err)
		}
		n = len(list)
	}
	perLine(b, n, "line")
}

func mustParseBytes(tb testing.TB, text []byte) *Table {
	tb.Helper()
	t, err := Parse(text, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func BenchmarkTable(b *testing.B) {
	text := kernelList(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = mustParseBytes(b, text).Len()
	}
	perLine(b, n, "line")
}

func BenchmarkBuildNames(b *testing.B) {
	t := mustParseBytes(b, kernelList(b))
	b.ReportAllocs()
	for b.Loop() {
		t.names = lazy[*nameIndex]{}
		t.nameIndex()
	}
	perLine(b, t.Len(), "symbol")
}

func BenchmarkBuildVariants(b *testing.B) {
	t := mustParseBytes(b, kernelList(b))
	b.ReportAllocs()
	for b.Loop() {
		t.variants = lazy[*nameIndex]{}
		t.variantIndex()
	}
	perLine(b, t.Len(), "symbol")
}

func BenchmarkBuildOrder(b *testing.B) {
	t := mustParseBytes(b, kernelList(b))
	b.ReportAllocs()
	for b.Loop() {
		t.addrs = lazy[*addrIndex]{}
		t.AddrOrder()
	}
	perLine(b, t.Len(), "symbol")
}

func BenchmarkByName(b *testing.B) {
	t := mustParseBytes(b, kernelList(b))
	wanted := make([][]byte, 0, t.Len())
	for _, s := range t.All() {
		wanted = append(wanted, []byte(s.Name))
	}
	rand.Shuffle(len(wanted), func(i, k int) { wanted[i], wanted[k] = wanted[k], wanted[i] })
	var dst []int
	b.ReportAllocs()
	for b.Loop() {
		for _, name := range wanted {
			dst = t.AppendByName(dst[:0], name)
		}
	}
	perLine(b, len(wanted), "name")
}

// BenchmarkJoin joins every other name of the table, in any order.
func BenchmarkJoin(b *testing.B) {
	t := mustParseBytes(b, kernelList(b))
	wanted := make([]string, 0, t.Len()/2)
	for i := 0; i+1 < t.Len(); i += 2 {
		wanted = append(wanted, t.Name(i))
	}
	rand.Shuffle(len(wanted), func(i, k int) { wanted[i], wanted[k] = wanted[k], wanted[i] })
	b.ReportAllocs()
	for b.Loop() {
		t.Join(len(wanted), func(i int) string { return wanted[i] })
	}
	perLine(b, t.Len(), "symbol")
}

func BenchmarkFind(b *testing.B) {
	t := mustParseBytes(b, kernelList(b))
	var wanted []uint64
	for _, s := range t.All() {
		wanted = append(wanted, s.Addr+4)
	}
	rand.Shuffle(len(wanted), func(i, k int) { wanted[i], wanted[k] = wanted[k], wanted[i] })
	b.ReportAllocs()
	for b.Loop() {
		for _, addr := range wanted {
			t.Find(addr)
		}
	}
	perLine(b, len(wanted), "address")
}
