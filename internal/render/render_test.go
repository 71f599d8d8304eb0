package render

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
)

func TestNumber(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0", 999: "999", 1000: "1,000", 999_999: "999,999", 1_000_000: "1,000,000", math.MaxUint64: "18,446,744,073,709,551,615",
	} {
		qt.Check(t, qt.Equals(Number(n), want))
	}
	qt.Check(t, qt.Equals(Number(12_345), "12,345"))
	qt.Check(t, qt.Equals(Number(-12_345), "-12,345"))
	qt.Check(t, qt.Equals(Number(-123), "-123"))
	qt.Check(t, qt.Equals(Number(math.MinInt), "-9,223,372,036,854,775,808"))
}

func TestPlural(t *testing.T) {
	qt.Check(t, qt.Equals(Plural(0, "call"), "0 calls"))
	qt.Check(t, qt.Equals(Plural(1, "call"), "1 call"))
	qt.Check(t, qt.Equals(Plural(uint64(1000), "call"), "1,000 calls"))
}

func TestDuration(t *testing.T) {
	for _, test := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0 µs"},
		{999 * time.Nanosecond, "0 µs"},
		{time.Millisecond - 1, "999 µs"},
		{time.Millisecond, "1 ms"},
		{time.Second - 1, "999 ms"},
		{time.Second, "1.0 s"},
		{99*time.Second + 949*time.Millisecond, "99.9 s"},
		{100*time.Second - 1, "100 s"},
		{100 * time.Second, "100 s"},
		{time.Hour, "3600 s"},
	} {
		qt.Check(t, qt.Equals(Duration(test.d), test.want))
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1 kB", 1499: "1 kB", 1500: "2 kB", 999_499: "999 kB", 999_500: "1.0 MB", 1_550_000: "1.6 MB", 3_500_000_000: "3500.0 MB",
	} {
		qt.Check(t, qt.Equals(Bytes(n), want))
	}
}

func TestAddress(t *testing.T) {
	qt.Check(t, qt.Equals(Address(0), "-"))
	qt.Check(t, qt.Equals(Address(0x1000), "0x0000000000001000"))
	qt.Check(t, qt.Equals(Address(math.MaxUint64), "0xffffffffffffffff"))
}

func TestReasons(t *testing.T) {
	qt.Check(t, qt.Equals(Reasons(nil), ""))
	by := map[kallscope.Reason]int{
		kallscope.ReasonNoSite: 7, kallscope.ReasonPadding: 49_133, kallscope.ReasonInit: 7, kallscope.ReasonDenied: 1,
	}
	// Equal ones come in the order in which a plan looks for them.
	for range 20 {
		qt.Assert(t, qt.Equals(Reasons(by), "49,133 padding, 7 init, 7 no-site, 1 denied"))
	}
}

func table(header Row, rows ...Row) string {
	var b strings.Builder
	if err := Table(&b, header, slices.Values(rows)); err != nil {
		return "error: " + err.Error()
	}
	return b.String()
}

func TestTable(t *testing.T) {
	for _, test := range []struct {
		name   string
		header Row
		rows   []Row
		want   string
	}{
		{"no rows", Row{">A", "B"}, nil, "A  B\n"},
		{"no columns", nil, nil, "\n"},
		{
			"wide cells",
			Row{">CALLS", "MODULE", "FUNCTION"},
			[]Row{{"1,234,567", "vmlinux", "vfs_read"}, {"5", "nf", "x"}},
			"    CALLS  MODULE   FUNCTION\n1,234,567  vmlinux  vfs_read\n        5  nf       x\n",
		},
		{"wide header", Row{"FUNCTION", ">N"}, []Row{{"a", "1"}}, "FUNCTION  N\na         1\n"},
		{"last column to the right", Row{"A", ">B"}, []Row{{"a", "1"}, {"a", "100"}}, "A    B\na    1\na  100\n"},
		{"an empty last cell", Row{"A", "B"}, []Row{{"a", ""}, {"a", "long"}}, "A  B\na  \na  long\n"},
		{"letters, not bytes", Row{"A", "B"}, []Row{{"µs", "x"}, {"ab", "y"}}, "A   B\nµs  x\nab  y\n"},
	} {
		qt.Check(t, qt.Equals(table(test.header, test.rows...), test.want), qt.Commentf("%s", test.name))
	}
}

// TestTableMismatch: a row with more or fewer cells than there are columns is
// a mistake of the caller, and said.
func TestTableMismatch(t *testing.T) {
	for _, row := range []Row{{"a"}, {"a", "b", "c"}} {
		qt.Check(t, qt.Equals(table(Row{"A", "B"}, row), "error: table: a row of "+Number(len(row))+" cells under 2 columns"))
	}
}

type full struct{}

var errFull = errors.New("disk full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	qt.Check(t, qt.ErrorIs(Table(full{}, Row{"A"}, slices.Values([]Row{{"a"}})), errFull))
	qt.Check(t, qt.ErrorIs(JSONLines(full{}, slices.Values([]any{1})), errFull))
	// A broken pipe ends the work, not only the output.
	n := 0
	err := JSONLines(full{}, func(yield func(any) bool) {
		for n = 0; n < 1_000_000 && yield("some text that fills the buffer"); n++ {
		}
	})
	qt.Check(t, qt.ErrorIs(err, errFull))
	qt.Check(t, qt.IsTrue(n < 10_000), qt.Commentf("%d records", n))
	qt.Check(t, qt.IsNotNil(JSONLines(full{}, slices.Values([]any{func() {}}))))
}

func TestJSONLines(t *testing.T) {
	var b strings.Builder
	qt.Assert(t, qt.IsNil(JSONLines(&b, slices.Values([]any{
		map[string]string{"type": "struct a<b> & *"}, kallscope.Hex(0xffffffff81000000), []int{},
	}))))
	qt.Assert(t, qt.Equals(b.String(), "{\"type\":\"struct a<b> & *\"}\n\"0xffffffff81000000\"\n[]\n"))
}

// FuzzTable checks that every line is aligned: columns begin at the same place,
// and cells come out whole.
func FuzzTable(f *testing.F) {
	f.Add("vfs_read", "1,234", "µs")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for _, s := range []string{a, b, c} {
			if !utf8.ValidString(s) || strings.ContainsAny(s, "\n") {
				return
			}
		}
		rows := []Row{{a, b, "|" + c}, {b, c, "|" + a}}
		lines := strings.Split(table(Row{"A", ">B", "C"}, rows...), "\n")
		if len(lines) != 4 {
			t.Fatalf("%q", lines)
		}
		at := -1
		for i, row := range rows {
			before, ok := strings.CutSuffix(lines[i+1], row[2])
			if !ok || !strings.HasPrefix(before, row[0]) || !strings.HasSuffix(strings.TrimSuffix(before, "  "), row[1]) {
				t.Fatalf("%q of %q", lines[i+1], row)
			}
			if n := utf8.RuneCountInString(before); at >= 0 && n != at {
				t.Fatalf("%q", lines)
			} else {
				at = n
			}
		}
	})
}

// FuzzJSONLines checks that each record is one line, which reads back.
func FuzzJSONLines(f *testing.F) {
	f.Add("struct a<b> & *", "line\nend\u2028")
	f.Fuzz(func(t *testing.T, a, b string) {
		var out strings.Builder
		if err := JSONLines(&out, slices.Values([]any{a, b})); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		if len(lines) != 3 {
			t.Fatalf("%q", lines)
		}
		for i, want := range []string{a, b} {
			var got string
			if err := json.Unmarshal([]byte(lines[i]), &got); err != nil || got != strings.ToValidUTF8(want, "\ufffd") && utf8.ValidString(want) {
				t.Fatalf("%q: %q, %v", want, got, err)
			}
		}
	})
}
