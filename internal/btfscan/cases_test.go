package btfscan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// TestCasesRefused holds the cases that must not parse, with what the error
// must say.
func TestCasesRefused(t *testing.T) {
	for name, want := range map[string]string{
		"btf_zero_bytes":        `.*not BTF: file is empty`,
		"btf_short_header":      `BTF byte 0: header cut: 17 of 24 bytes`,
		"btf_bad_magic":         `.*not BTF \(first bytes 9e eb\)`,
		"btf_version2":          `BTF byte 2: BTF version 2, only version 1 is known`,
		"btf_stroff_far":        `BTF type 2 at byte 40: name offset 2147483647 is outside the string section of 5 bytes`,
		"btf_str_no_nul":        `BTF byte 85: string section does not end in NUL`,
		"btf_str_first_nonzero": `BTF byte 72: string section does not begin with NUL.*`,
		"btf_str_past_end":      `string section: BTF byte 16: bytes 72 to 4168 are past the end, 87 bytes there`,
		"btf_type_cut":          `BTF type 3 at byte 60: needs 12 bytes, 6 are left in the type section`,
		"btf_vlen_huge":         `BTF type 1 at byte 24: needs 786432 bytes, 24 are left in the type section`,
		"btf_id_oob":            `BTF type 4 refers to type 9999: out of range, the last is 4`,
		"btf_split_mod":         `split BTF: needs its base \(string offset 17 beyond own strings of 9 bytes\).*`,
		"btf_distilled_mod":     `split BTF: needs its base \(string offset 26 beyond own strings of 9 bytes\).*`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(readCase(t, name+".btf"), nil)
			qt.Assert(t, qt.ErrorMatches(err, want))
		})
	}
}

// TestHeaderLength: the header may be longer than known, not than the file.
func TestHeaderLength(t *testing.T) {
	data := readCase(t, "btf_header_only.btf")
	binary.LittleEndian.PutUint32(data[4:], 1<<31)
	_, err := Parse(data, nil)
	qt.Assert(t, qt.ErrorMatches(err, `BTF byte 4: header length 2147483648, only \d+ bytes there`))
}

func TestCaseRefusedAllocatesLittle(t *testing.T) {
	data := readCase(t, "btf_vlen_huge.btf")
	got := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = Parse(data, nil)
		}
	}).AllocedBytesPerOp()
	qt.Assert(t, qt.IsTrue(got < 4096), qt.Commentf("%d bytes", got))
}

func TestCaseSplitErrors(t *testing.T) {
	_, err := Parse(readCase(t, "btf_split_mod.btf"), nil)
	qt.Check(t, qt.ErrorIs(err, ErrNeedsBase))

	var format *FormatError
	_, err = Parse(readCase(t, "btf_type_cut.btf"), nil)
	qt.Assert(t, qt.IsTrue(errors.As(err, &format)))
	qt.Check(t, qt.Equals(format.ID, 3))
	qt.Check(t, qt.Equals(format.Offset, 60))

	var ref *RefError
	_, err = Parse(readCase(t, "btf_id_oob.btf"), nil)
	qt.Assert(t, qt.IsTrue(errors.As(err, &ref)))
	qt.Check(t, qt.Equals(ref.ID, 4))
	qt.Check(t, qt.Equals(ref.Ref, 9999))
}

// checkMin checks what btf_min, btf_hdr32_* and elf_btf have in common.
func checkMin(t *testing.T, b *BTF) {
	t.Helper()
	qt.Check(t, qt.Equals(b.NumTypes(), 3))
	qt.Check(t, qt.Equals(b.FirstID(), 1))
	qt.Check(t, qt.Equals(b.FuncCount(), 1))
	qt.Check(t, qt.DeepEquals(b.ByName("demo_fn"), []Func{{3, "demo_fn", Static, 2}}))
	f, ok := b.FuncByID(3)
	qt.Check(t, qt.IsTrue(ok))
	qt.Check(t, qt.Equals(f.Name, "demo_fn"))
	qt.Check(t, qt.Equals(mustPrototype(t, b, "demo_fn"), "int demo_fn(int a)"))
	qt.Check(t, qt.IsNil(b.Partial()))
	qt.Check(t, qt.IsFalse(b.Distilled()))
}

func TestCaseMin(t *testing.T) {
	b := mustParse(t, readCase(t, "btf_min.btf"), nil)
	checkMin(t, b)
	qt.Check(t, qt.Equals(b.Warning(), ""))
	p, err := b.Proto(2)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(p, Proto{Ret: 1, Params: []Param{{"a", 1}}}))
}

func TestCaseHeaderOnly(t *testing.T) {
	b := mustParse(t, readCase(t, "btf_header_only.btf"), nil)
	qt.Check(t, qt.Equals(b.NumTypes(), 0))
	qt.Check(t, qt.Equals(b.FuncCount(), 0))
	qt.Check(t, qt.HasLen(b.ByName("x"), 0))
}

func TestCaseHeader32(t *testing.T) {
	b := mustParse(t, readCase(t, "btf_hdr32_zero.btf"), nil)
	checkMin(t, b)
	qt.Check(t, qt.Equals(b.Warning(), ""))

	b = mustParse(t, readCase(t, "btf_hdr32_nonzero.btf"), nil)
	checkMin(t, b)
	qt.Check(t, qt.Matches(b.Warning(), `unknown header fields \(byte 24 is not zero\).*`))
}

func TestCaseEnum64(t *testing.T) {
	b := mustParse(t, readCase(t, "btf_enum64.btf"), nil)
	qt.Check(t, qt.Equals(b.NumTypes(), 3))
	f := b.ByName("after_enum64")
	qt.Assert(t, qt.HasLen(f, 1))
	qt.Check(t, qt.Equals(f[0].ID, 3))
	qt.Check(t, qt.IsTrue(b.HasEnumerator("B")))
	qt.Check(t, qt.IsFalse(b.HasEnumerator("e")), qt.Commentf("the enum itself"))
	r, err := b.record(1)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(int64(uint64(r.word(5))<<32|uint64(r.word(4))), -1))
}

func TestCaseTags(t *testing.T) {
	b := mustParse(t, readCase(t, "btf_tags_kflag.btf"), nil)
	qt.Check(t, qt.Equals(b.NumTypes(), 8))
	f := b.ByName("tag_fn")
	qt.Assert(t, qt.HasLen(f, 1))
	qt.Check(t, qt.Equals(f[0].ID, 5))
	qt.Check(t, qt.Equals(mustPrototype(t, b, "tag_fn"), "int tag_fn(int *p)"))
}

func TestCaseCycle(t *testing.T) {
	b := mustParse(t, readCase(t, "btf_cycle.btf"), nil)
	f := b.ByName("cyc_fn")
	qt.Assert(t, qt.HasLen(f, 1))
	qt.Check(t, qt.Equals(f[0].Name, "cyc_fn"))

	_, err := b.TypeName(3)
	qt.Check(t, qt.ErrorIs(err, ErrCycle))
	_, err = b.Shape(f[0].Proto)
	qt.Check(t, qt.ErrorIs(err, ErrCycle))
	_, err = b.Sizeof(1)
	qt.Check(t, qt.ErrorIs(err, ErrCycle))
	_, err = b.MatchType(1, "struct x")
	qt.Check(t, qt.ErrorIs(err, ErrCycle))
	_, err = b.MatchType(3, "int[4]")
	qt.Check(t, qt.ErrorIs(err, ErrCycle))
	// A typedef's own name needs no resolving.
	qt.Check(t, qt.Equals(mustPrototype(t, b, "cyc_fn"), "a cyc_fn(void)"))
	name, err := b.TypeName(1)
	qt.Check(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(name, "a"))
}

func TestCaseLinkage(t *testing.T) {
	b := mustParse(t, readCase(t, "btf_linkage.btf"), nil)
	got := map[string]string{}
	valid := 0
	for f := range b.Funcs() {
		got[f.Name] = f.Linkage.String()
		if f.Linkage.Valid() {
			valid++
		}
	}
	qt.Check(t, qt.DeepEquals(got, map[string]string{
		"f_static": "static", "f_global": "global", "f_extern": "extern", "f_weird": "malformed (7)",
	}))
	qt.Check(t, qt.Equals(valid, 3))
}

func TestCaseProtos(t *testing.T) {
	b := mustParse(t, readCase(t, "btf_unattachable_protos.btf"), nil)
	shape := func(name string) Shape {
		f := b.ByName(name)
		qt.Assert(t, qt.HasLen(f, 1), qt.Commentf(name))
		s, err := b.Shape(f[0].Proto)
		qt.Assert(t, qt.IsNil(err))
		return s
	}
	qt.Check(t, qt.HasLen(shape("thirteen").Params, 13))
	qt.Check(t, qt.IsTrue(shape("variadic").Variadic))
	qt.Check(t, qt.HasLen(shape("variadic").Params, 1))
	qt.Check(t, qt.DeepEquals(shape("by_value").Params, []Value{{ClassStruct, 24}}))
	six := shape("six")
	qt.Check(t, qt.HasLen(six.Params, 6))
	qt.Check(t, qt.IsFalse(six.Variadic))
	qt.Check(t, qt.Equals(six.Params[5], Value{ClassScalar, 4}))
}

func TestCaseSplit(t *testing.T) {
	base := mustParse(t, readCase(t, "btf_split_base.btf"), nil)
	b := mustParse(t, readCase(t, "btf_split_mod.btf"), base)
	qt.Check(t, qt.Equals(b.FirstID(), 4))
	qt.Check(t, qt.Equals(b.NumTypes(), 3))
	qt.Check(t, qt.DeepEquals(b.ByName("mod_fn"), []Func{{6, "mod_fn", Static, 5}}))
	qt.Check(t, qt.HasLen(b.ByName("demo_fn"), 0), qt.Commentf("the base's"))
	qt.Check(t, qt.Equals(mustPrototype(t, b, "mod_fn"), "int mod_fn(int *q)"))
	f, ok := b.FuncByID(3)
	qt.Check(t, qt.IsTrue(ok))
	qt.Check(t, qt.Equals(f.Name, "demo_fn"))
	qt.Check(t, qt.Equals(b.Base(), base))
}

func TestCaseDistilled(t *testing.T) {
	base := mustParse(t, readCase(t, "btf_distilled_base.btf"), nil)
	qt.Check(t, qt.Equals(base.NumTypes(), 3))
	size, err := base.Sizeof(2)
	qt.Check(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(size, 9216))
	b := mustParse(t, readCase(t, "btf_distilled_mod.btf"), base)
	qt.Check(t, qt.Equals(b.ByName("oot_fn")[0].ID, 6))
	qt.Check(t, qt.Equals(mustPrototype(t, b, "oot_fn"), "int oot_fn(struct task_demo *t)"))
}

func TestCaseELF(t *testing.T) {
	b, err := FromELF(bytes.NewReader(readCase(t, "elf_btf.elf")), nil)
	qt.Assert(t, qt.IsNil(err))
	checkMin(t, b)

	other := mustParse(t, readCase(t, "btf_min.btf"), nil)
	b, err = FromELF(bytes.NewReader(readCase(t, "elf_btf_base.elf")), other)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(b.ByName("oot_fn")[0].ID, 6))
	qt.Check(t, qt.IsTrue(b.Distilled()))
	qt.Check(t, qt.Not(qt.Equals(b.Base(), other)))
	qt.Check(t, qt.IsTrue(b.Base().Distilled()))
}

// TestCasesAllHeld fails when a case is added that no test reads.
func TestCasesAllHeld(t *testing.T) {
	names, err := filepath.Glob("testdata/cases/*.expect")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(len(names) > 20))
	tests, err := os.ReadFile("cases_test.go")
	qt.Assert(t, qt.IsNil(err))
	for _, name := range names {
		input := strings.TrimSuffix(name, ".expect")
		_, err := os.Stat(input)
		qt.Check(t, qt.IsNil(err))
		stem := strings.TrimSuffix(filepath.Base(input), filepath.Ext(input))
		qt.Check(t, qt.IsTrue(bytes.Contains(tests, []byte(`"`+stem))), qt.Commentf(stem))
	}
}
