package kallsyms

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// readCase returns the table of a file below testdata/cases.
func readCase(tb testing.TB, name string, o Options) (*Table, error) {
	tb.Helper()
	return ReadFile(filepath.Join("testdata", "cases", name), o)
}

func mustReadCase(tb testing.TB, name string, o Options) *Table {
	tb.Helper()
	t, err := readCase(tb, name, o)
	qt.Assert(tb, qt.IsNil(err))
	return t
}

// names returns all names of t.
func names(t *Table) []string {
	var list []string
	for _, s := range t.All() {
		list = append(list, s.Name)
	}
	return list
}

func namesOf(t *Table, numbers []int) []string {
	var list []string
	for _, i := range numbers {
		list = append(list, t.Name(i))
	}
	return list
}

// Every case must have a test here and a description beside it.
func TestCasesAreComplete(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.expect")
	qt.Assert(t, qt.IsNil(err))
	source, err := os.ReadFile("cases_test.go")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(len(files), 16))
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".expect")
		qt.Check(t, qt.StringContains(string(source), `"`+name+`"`))
		_, err := os.Stat(strings.TrimSuffix(f, ".expect"))
		qt.Check(t, qt.IsNil(err))
	}
}

func TestCase32Bit(t *testing.T) {
	tab := mustReadCase(t, "32bit.txt", Options{})
	qt.Assert(t, qt.DeepEquals(names(tab), []string{"stext", "demo_fn", "mod_fn"}))
	qt.Assert(t, qt.Equals(tab.Mapping(), 2))
	qt.Assert(t, qt.Equals(tab.Addr(1), uint64(0xc0008100)))
	l, ok := tab.Find(0xc0008104)
	qt.Assert(t, qt.IsTrue(ok))
	qt.Assert(t, qt.Equals(l.String(), "demo_fn+0x4"))
}

func TestCaseClangCFI(t *testing.T) {
	tab := mustReadCase(t, "clang_cfi.txt", Options{})
	qt.Assert(t, qt.Equals(tab.Len(), 8))
	qt.Assert(t, qt.Equals(tab.Mapping(), 0)) // '$' inside a name is no mapping symbol

	_, err := tab.Resolve("hook_fn")
	var ambiguous *AmbiguousError
	qt.Assert(t, qt.ErrorAs(err, &ambiguous))
	qt.Assert(t, qt.Equals(len(ambiguous.Symbols), 2))
	qt.Assert(t, qt.Equals(ambiguous.Symbols[0].Addr, 0xffffffc008100000))
	qt.Assert(t, qt.Equals(ambiguous.Symbols[1].Addr, 0xffffffc008100100))

	s, err := tab.Resolve("exported_fn") // not its slot in the jump table
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(s.Addr, 0xffffffc008100200))
	s, err = tab.Resolve("pick_demo")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(s.Name, "pick_demo$00112233445566778899aabbccddeeff"))
	qt.Assert(t, qt.DeepEquals(namesOf(tab, tab.Variants("kfn")), []string{"__cfi_kfn"}))
}

func TestCaseCompilerSuffixes(t *testing.T) {
	tab := mustReadCase(t, "compiler_suffixes.txt", Options{})
	_, err := tab.Resolve("finish_demo")
	var missing *NotFoundError
	qt.Assert(t, qt.ErrorAs(err, &missing))
	qt.Assert(t, qt.ErrorIs(err, ErrNotFound))
	qt.Assert(t, qt.Equals(len(missing.Variants), 1)) // neither __pfx_ nor .cold
	qt.Assert(t, qt.Equals(missing.Variants[0].Name, "finish_demo.isra.0"))
	qt.Assert(t, qt.ErrorMatches(err, ".*not found; the compiler made finish_demo.isra.0 of it, whose arguments may differ"))
	qt.Assert(t, qt.DeepEquals(namesOf(tab, tab.Variants("finish_demo")), []string{
		"__pfx_finish_demo.isra.0", "finish_demo.isra.0", "finish_demo.isra.0.cold",
	}))
	qt.Assert(t, qt.DeepEquals(namesOf(tab, tab.Variants("finish_demo.isra.0")), []string{
		"__pfx_finish_demo.isra.0", "finish_demo.isra.0.cold",
	}))

	s, err := tab.Resolve("ksys_demo")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(s.Name, "ksys_demo"))
	qt.Assert(t, qt.DeepEquals(namesOf(tab, tab.Variants("ksys_demo")), []string{"ksys_demo.constprop.0"}))
	for _, name := range []string{".slowpath", ".E_copy"} {
		s, err := tab.Resolve(name)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(s.Name, name))
	}
}

func TestCaseGzip(t *testing.T) {
	tab := mustReadCase(t, "copy.txt.gz", Options{})
	qt.Assert(t, qt.DeepEquals(names(tab), []string{"_stext", "demo_a", "demo_m"}))
	qt.Assert(t, qt.Equals(tab.Module(2), "demo"))
}

func TestCaseCopied(t *testing.T) {
	tab := mustReadCase(t, "crlf_copied.txt", Options{Lenient: true})
	qt.Assert(t, qt.DeepEquals(names(tab), []string{"_stext", "demo_a", "demo_m", "_etext"}))
	qt.Assert(t, qt.Equals(tab.Module(2), "demo"))
	qt.Assert(t, qt.Equals(tab.Skipped(), 1))
	w := tab.Warnings()
	qt.Assert(t, qt.Equals(len(w), 2))
	qt.Assert(t, qt.Equals(w[0].String(), `line 5 skipped: a comment: "# pasted comment"`))
	qt.Assert(t, qt.Equals(w[1].Line, 6)) // no line end
	qt.Assert(t, qt.IsFalse(w[1].Skipped))

	_, err := readCase(t, "crlf_copied.txt", Options{})
	qt.Assert(t, qt.ErrorIs(err, ErrNotKallsyms)) // a strict read stops at the byte order mark
}

func TestCaseDataOnly(t *testing.T) {
	tab := mustReadCase(t, "data_only.txt", Options{})
	for _, s := range tab.All() {
		qt.Check(t, qt.Equals(s.IsText(), s.Name == "demo_text"))
	}
	s, err := tab.Resolve("demo_data")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsFalse(s.IsText()))
	_, ok := tab.Find(s.Addr)
	qt.Assert(t, qt.IsFalse(ok))
	qt.Assert(t, qt.DeepEquals(tab.At(s.Addr), []int{0}))
}

func TestCaseDuplicates(t *testing.T) {
	tab := mustReadCase(t, "dups.txt", Options{})
	qt.Assert(t, qt.DeepEquals(tab.ByName("seq_demo"), []int{0, 1, 2}))
	qt.Assert(t, qt.DeepEquals(tab.ByName("load_demo"), []int{4, 5}))
	for _, name := range []string{"seq_demo", "load_demo", "uniq_fn"} {
		_, err := tab.Resolve(name)
		qt.Check(t, qt.ErrorIs(err, ErrAmbiguous))
	}
	s, err := tab.ResolveIn("drv_b", "load_demo")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(s.Addr, 0xffffffffc0a10020))
	s, err = tab.ResolveIn("", "uniq_fn")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(s.Addr, 0xffffffff81600000))
	_, err = tab.Resolve("uniq_fn")
	qt.Assert(t, qt.ErrorMatches(err, `symbol uniq_fn: 2 addresses \(0xffffffff81600000 uniq_fn, `+
		`0xffffffffc0a10120 uniq_fn \[drv_b\]\); choose by module or address`))
}

func TestCaseFirstLine(t *testing.T) {
	tab := mustReadCase(t, "first_line.txt", Options{})
	qt.Assert(t, qt.DeepEquals(names(tab), []string{"only_first", "second"}))
	qt.Assert(t, qt.DeepEquals(tab.ByName("only_first"), []int{0}))
}

func TestCaseHTML(t *testing.T) {
	for _, lenient := range []bool{false, true} {
		tab, err := readCase(t, "html.txt", Options{Lenient: lenient})
		qt.Check(t, qt.IsNil(tab))
		qt.Check(t, qt.ErrorIs(err, ErrNotKallsyms))
		qt.Check(t, qt.ErrorMatches(err, "read .*html.txt: .*no line looks like a symbol; is this the right file[?]"))
	}
}

// TestCaseIPToName: what a probe reports lies behind the entry, by an endbr64,
// a landing pad or a breakpoint, and still has the function's name.
func TestCaseIPToName(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "cases", "ip_to_name.csv"))
	qt.Assert(t, qt.IsNil(err))
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(rows, 7))
	var list strings.Builder
	for _, row := range rows[1:] {
		fmt.Fprintf(&list, "%s t %s\n", row[0], row[1])
	}
	tab, err := Parse([]byte(list.String()), Options{})
	qt.Assert(t, qt.IsNil(err))
	for _, row := range rows[1:] {
		ip, err := strconv.ParseUint(row[2], 16, 64)
		qt.Assert(t, qt.IsNil(err))
		l, ok := tab.Find(ip)
		qt.Assert(t, qt.IsTrue(ok))
		qt.Check(t, qt.Equals(l.Symbol.Name, row[1]), qt.Commentf("%s", row[3]))
		qt.Check(t, qt.Equals(fmt.Sprintf("%x", ip-l.Offset), row[0]))
		if l.Size > 0 { // up to the next one
			last, _ := tab.Find(l.Symbol.Addr + l.Size - 1)
			qt.Check(t, qt.Equals(last.Symbol.Name, row[1]))
			next, _ := tab.Find(l.Symbol.Addr + l.Size)
			qt.Check(t, qt.Not(qt.Equals(next.Symbol.Name, row[1])))
		}
	}
}

func TestCaseLLVM(t *testing.T) {
	tab := mustReadCase(t, "llvm.txt", Options{})
	s, err := tab.Resolve("demo_make")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(s.Name, "demo_make.llvm.4242424242424242421"))
	qt.Assert(t, qt.Equals(s.Module, "demofs"))
	s, err = tab.Resolve("plain_static")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(s.Name, "plain_static"))
	qt.Assert(t, qt.DeepEquals(namesOf(tab, tab.Variants("plain_static")), []string{"plain_static.llvm.77"}))
	s, err = tab.Resolve("x")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(s.Name, "x.llvm.notdigits"))
	_, err = tab.Resolve("keep")
	qt.Assert(t, qt.ErrorIs(err, ErrNotFound))
}

func TestCaseMappingSymbols(t *testing.T) {
	tab := mustReadCase(t, "mapping_syms.txt", Options{})
	qt.Assert(t, qt.DeepEquals(names(tab), []string{"demo_entry", "demo_body", "__tracepoint_demo"}))
	qt.Assert(t, qt.Equals(tab.Mapping(), 4))
	l, ok := tab.Find(0xffff800080010000)
	qt.Assert(t, qt.IsTrue(ok))
	qt.Assert(t, qt.Equals(l.Symbol.Name, "demo_entry"))
	qt.Assert(t, qt.Equals(len(l.Aliases), 0))
	at := tab.At(0xffff80007a0000c0)
	qt.Assert(t, qt.DeepEquals(namesOf(tab, at), []string{"__tracepoint_demo"}))
	qt.Assert(t, qt.Equals(tab.Module(at[0]), "demo"))
}

func TestCaseNull(t *testing.T) {
	tab := mustReadCase(t, "null.txt", Options{})
	qt.Assert(t, qt.Equals(tab.Len(), 5))
	qt.Assert(t, qt.Equals(tab.State(), Visible))
	qt.Assert(t, qt.Equals(tab.Addr(0), uint64(0)))
	s, err := tab.Resolve("__per_cpu_start") // a true zero
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(s.Addr, uint64(0)))
}

func TestCaseLongNames(t *testing.T) {
	tab := mustReadCase(t, "rust_long.txt", Options{})
	qt.Assert(t, qt.Equals(tab.Len(), 3))
	qt.Assert(t, qt.Equals(len(tab.Name(0)), 542))
	qt.Assert(t, qt.Equals(len(tab.Name(1)), 5000))
	qt.Assert(t, qt.DeepEquals(tab.ByName("after_long"), []int{2}))

	_, err := readCase(t, "rust_long.txt", Options{MaxLine: 4096})
	qt.Assert(t, qt.ErrorIs(err, ErrLineTooLong))
	var at *LineError
	qt.Assert(t, qt.ErrorAs(err, &at))
	qt.Assert(t, qt.Equals(at.Line, 2))
}

func TestCaseTruncated(t *testing.T) {
	for _, lenient := range []bool{false, true} {
		tab, err := readCase(t, "truncated.txt", Options{Lenient: lenient})
		qt.Assert(t, qt.ErrorIs(err, ErrTruncated))
		qt.Assert(t, qt.ErrorMatches(err, `read .*: line 3: "ffffffff8100": line is incomplete; was the file cut short[?]`))
		qt.Assert(t, qt.DeepEquals(names(tab), []string{"_stext", "demo_a"}))
		qt.Assert(t, qt.IsTrue(tab.Truncated()))
	}
}

func TestCaseHidden(t *testing.T) {
	tab := mustReadCase(t, "zero.txt", Options{})
	qt.Assert(t, qt.Equals(tab.State(), Hidden))
	qt.Assert(t, qt.Equals(tab.Len(), 5))
	qt.Assert(t, qt.DeepEquals(tab.Modules(), []string{"demo"}))
	s, err := tab.Resolve("vfs_read")
	qt.Assert(t, qt.Equals(s.Name, "vfs_read"))
	qt.Assert(t, qt.ErrorIs(err, ErrHidden))
	qt.Assert(t, qt.IsFalse(errors.Is(err, ErrNotFound)))
	qt.Assert(t, qt.ErrorMatches(err, ".*kptr_restrict.*CAP_SYSLOG.*"))
	_, err = tab.Resolve("vfs_wride")
	qt.Assert(t, qt.ErrorIs(err, ErrNotFound))
	_, err = tab.Locate(0xffffffff81000000)
	qt.Assert(t, qt.ErrorIs(err, ErrHidden))
	_, ok := tab.Find(0)
	qt.Assert(t, qt.IsFalse(ok))
	qt.Assert(t, qt.IsNil(tab.At(0)))
	qt.Assert(t, qt.Equals(len(tab.AddrOrder()), 0))
}
