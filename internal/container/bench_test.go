package container

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// BenchmarkSections opens a file with as many sections as a kernel can have
// modules, and inflates all of them.
func BenchmarkSections(b *testing.B) {
	w := NewWriter("test", 3)
	for i := range 1400 {
		section := []byte(strings.Repeat(fmt.Sprintf("ffffffff8100%04d t function_%d\n", i, i), 500))
		qt.Assert(b, qt.IsNil(w.Add(fmt.Sprint("btf:", i), section, Zstd)))
	}
	data, err := w.Bytes()
	qt.Assert(b, qt.IsNil(err))
	b.ReportAllocs()
	for b.Loop() {
		f, err := OpenBytes(data, options)
		qt.Assert(b, qt.IsNil(err))
		for _, s := range f.Sections() {
			_, err := s.Bytes(1 << 20)
			qt.Assert(b, qt.IsNil(err))
		}
	}
}
