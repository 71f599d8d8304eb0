package kallsyms

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// TestAppend cuts a source at lines around the ends of chunks: both parts give
// what the whole gives.
func TestAppend(t *testing.T) {
	var lines []string
	for i := range 3*chunkLen + 5 {
		module := ""
		if i > 2*chunkLen+100 {
			module = fmt.Sprintf("\t[mod%d]", i/1000)
		}
		lines = append(lines, fmt.Sprintf("%016x t fn_%d%s\n", 0x1000+i*16, i, module))
	}
	whole, err := Parse([]byte(strings.Join(lines, "")), Options{})
	qt.Assert(t, qt.IsNil(err))
	for _, cut := range []int{1, chunkLen - 1, chunkLen, chunkLen + 1, 2 * chunkLen, 2*chunkLen + 102, 3 * chunkLen, len(lines) - 1} {
		first, err := Parse([]byte(strings.Join(lines[:cut], "")), Options{})
		qt.Assert(t, qt.IsNil(err))
		before := first.Symbol(cut - 1)
		both, err := first.Append(strings.NewReader(strings.Join(lines[cut:], "")), Options{})
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(both.Len(), whole.Len()))
		qt.Assert(t, qt.Equals(both.State(), whole.State()))
		qt.Assert(t, qt.DeepEquals(both.Modules(), whole.Modules()))
		for i, s := range whole.All() {
			if both.Symbol(i) != s {
				t.Fatalf("cut at %d: symbol %d is %v, want %v", cut, i, both.Symbol(i), s)
			}
		}
		qt.Assert(t, qt.Equals(first.Len(), cut))
		qt.Assert(t, qt.Equals(first.Symbol(cut-1), before))
	}
}

func TestAppendNothing(t *testing.T) {
	table, err := Parse([]byte("0000000000001000 t fn\n"), Options{})
	qt.Assert(t, qt.IsNil(err))
	same, err := table.Append(strings.NewReader(""), Options{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(same, table))
	_, err = table.Append(strings.NewReader("nonsense\n"), Options{})
	qt.Assert(t, qt.ErrorIs(err, ErrNotKallsyms))
}

func TestAppendToZeroTable(t *testing.T) {
	table, err := new(Table).Append(strings.NewReader("0000000000001000 t fn\t[m]\n"), Options{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(table.Symbol(0), Symbol{Addr: 0x1000, Type: 't', Name: "fn", Module: "m"}))
}
