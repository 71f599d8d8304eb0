package kallsyms

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

const hash = "9c3f0aa1b2c3d4e5f60718293a4b5c6d"

func TestClassify(t *testing.T) {
	for name, want := range map[string]Class{
		"":                                  ClassPlain,
		"vfs_read":                          ClassPlain,
		".slowpath":                         ClassPlain,
		".E_copy":                           ClassPlain,
		"a$b":                               ClassPlain,
		"__pfx_":                            ClassPlain,
		"__pfx_vfs_read":                    ClassPadding,
		"__pfx_f.isra.0":                    ClassPadding,
		"__cfi_f":                           ClassCFIPreamble,
		"f.cfi_jt":                          ClassCFIJumpTable,
		"f." + hash:                         ClassHash,
		"f$" + hash:                         ClassHash,
		"f$" + hash + ".cfi_jt":             ClassCFIJumpTable,
		"f$" + hash + "0":                   ClassPlain,
		"f." + hash + ".cfi_jt":             ClassCFIJumpTable,
		"f.cfi":                             ClassRenamed,
		"f.llvm.123.cfi":                    ClassLLVM,
		"f.llvm.123":                        ClassLLVM,
		"f.llvm.notdigits":                  ClassLLVM,
		"f.llvm.":                           ClassLLVM,
		"f.cold":                            ClassCold,
		"f.cold.1":                          ClassCold,
		"f.isra.0":                          ClassClone,
		"f.constprop.0.isra.0":              ClassClone,
		"f.isra.0.cold":                     ClassCold,
		"f.part.0":                          ClassPart,
		"f.part.0.isra.0":                   ClassPart,
		"f.part.0.cold":                     ClassCold,
		"f.isra":                            ClassUnknown,
		"f.isra.x":                          ClassUnknown,
		"f.0":                               ClassRenamed,
		"f.lto_priv.0":                      ClassRenamed,
		"f.localalias":                      ClassRenamed,
		"f.__uniq.12345":                    ClassRenamed,
		"f.whatever":                        ClassUnknown,
		"f.whatever.cold":                   ClassCold,
		"f.":                                ClassUnknown,
		"f..":                               ClassUnknown,
		"__SCT__might_resched":              ClassStaticCall,
		"__ftrace_invalid_address___16":     ClassInvalid,
		"_RNvNtCs1234_4core3fmt5write.cold": ClassCold,
	} {
		qt.Check(t, qt.Equals(Classify(name), want), qt.Commentf("%q", name))
	}
}

func TestIsFunction(t *testing.T) {
	functions := map[Class]bool{
		ClassPlain: true, ClassUnknown: true, ClassRenamed: true,
		ClassLLVM: true, ClassHash: true, ClassClone: true,
	}
	for c := ClassPlain; c <= ClassInvalid; c++ {
		qt.Check(t, qt.Equals(c.IsFunction(), functions[c]), qt.Commentf("%v", c))
		qt.Check(t, qt.IsTrue(c.String() != "" && !strings.HasPrefix(c.String(), "Class")))
	}
	qt.Check(t, qt.Equals(fmt.Sprint(Class(-1), Class(99)), "Class(-1) Class(99)"))
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ name, base, suffix, llvm string }{
		{"", "", "", ""},
		{".", ".", "", "."},
		{"f", "f", "", "f"},
		{"f.isra.0.cold", "f", ".isra.0.cold", "f.isra.0.cold"},
		{".f", ".f", "", ".f"},
		{".f.cold", ".f", ".cold", ".f.cold"},
		{"f.llvm.1", "f", ".llvm.1", "f"},
		{"f.isra.0.llvm.1.cold", "f", ".isra.0.llvm.1.cold", "f.isra.0"},
		{"f$" + hash, "f", "$" + hash, "f$" + hash},
		{"f$" + hash + ".cfi_jt", "f", "$" + hash + ".cfi_jt", "f$" + hash + ".cfi_jt"},
		{"$" + hash, "$" + hash, "", "$" + hash},
	} {
		qt.Check(t, qt.Equals(BaseName(c.name), c.base), qt.Commentf("%q", c.name))
		qt.Check(t, qt.Equals(Suffix(c.name), c.suffix), qt.Commentf("%q", c.name))
		qt.Check(t, qt.Equals(TrimLLVM(c.name), c.llvm), qt.Commentf("%q", c.name))
	}
}

func TestIsMapping(t *testing.T) {
	for name, want := range map[string]bool{
		"$x": true, "$d": true, "$x.12": true, "$a": true, "$t": true, "$xrv64i2p1": true,
		".L1": true, ".LBB0_1": true, "L0": true, "L0\x01": true,
		"a$x": false, ".l": false, ".": false, "L": false, "L1": false, "x": false,
	} {
		qt.Check(t, qt.Equals(isMapping(name), want), qt.Commentf("%q", name))
	}
}

func TestClassifyAllocatesNothing(t *testing.T) {
	names := []string{"f", "f.isra.0.cold", "f$" + hash + ".cfi_jt", "f.whatever.1"}
	allocs := testing.AllocsPerRun(100, func() {
		for _, n := range names {
			Classify(n)
		}
	})
	qt.Assert(t, qt.Equals(allocs, 0))
}

func FuzzClassify(f *testing.F) {
	for _, s := range []string{"f.isra.0.cold", "..", "$" + hash, "f$" + hash + ".x", ".llvm."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		c := Classify(name)
		qt.Check(t, qt.IsTrue(c >= ClassPlain && c <= ClassInvalid))
		qt.Check(t, qt.Equals(BaseName(name)+Suffix(name), name))
		qt.Check(t, qt.IsTrue(name == "" || BaseName(name) != ""))
		qt.Check(t, qt.Equals(BaseName(BaseName(name)), BaseName(name)))
		qt.Check(t, qt.IsTrue(strings.HasPrefix(name, TrimLLVM(name))))
	})
}
