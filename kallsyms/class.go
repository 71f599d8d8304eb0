package kallsyms

import (
	"fmt"
	"strings"
)

// Class is what the name of a text symbol says about it.
type Class int

// The classes. Where several apply, a name has the last of them: the .cold
// part of an .isra clone is [ClassCold].
const (
	// ClassPlain names have nothing added. They are functions as far as the
	// name can tell.
	ClassPlain Class = iota
	// ClassUnknown names have a suffix that no rule knows: see [Suffix].
	// Nothing is guessed from it, so they count as functions.
	ClassUnknown
	// ClassRenamed is a whole function under a longer name, to tell it from
	// others of its name (.lto_priv.N, .__uniq.N, .localalias, .cfi, .N).
	ClassRenamed
	// ClassLLVM is a static function that clang's ThinLTO made global, under
	// NAME.llvm.N. The kernel looks it up as NAME.
	ClassLLVM
	// ClassHash is a static function whose name clang extended by 32
	// hexadecimal digits after '.' or '$', with control flow integrity.
	ClassHash
	// ClassClone is a function the compiler specialised (.isra.N,
	// .constprop.N): a real function, perhaps with other arguments than its
	// source has. Calls may go to it, to the plain one, or to both.
	ClassClone
	// ClassPart is a fragment that was split off (.part.N).
	ClassPart
	// ClassCold is the unlikely half of a function (.cold, .cold.N). It is
	// jumped to, not called.
	ClassCold
	// ClassStaticCall is the trampoline of a static call (__SCT__NAME,
	// STATIC_CALL_TRAMP_PREFIX in include/linux/static_call_types.h).
	ClassStaticCall
	// ClassCFIJumpTable is a slot of clang's jump table (NAME.cfi_jt).
	ClassCFIJumpTable
	// ClassCFIPreamble is the type hash in front of a function (__cfi_NAME).
	ClassCFIPreamble
	// ClassPadding is the room in front of a function (__pfx_NAME), which is
	// half of the symbols of kernels that are built with it.
	ClassPadding
	// ClassInvalid is a record of ftrace for a weak function that was left
	// out (__ftrace_invalid_address___N, FTRACE_INVALID_FUNCTION in
	// kernel/trace/ftrace.c).
	ClassInvalid
)

var classNames = [...]string{
	ClassPlain:        "plain",
	ClassUnknown:      "unknown suffix",
	ClassRenamed:      "renamed",
	ClassLLVM:         "LLVM",
	ClassHash:         "hash",
	ClassClone:        "clone",
	ClassPart:         "part",
	ClassCold:         "cold",
	ClassStaticCall:   "static call",
	ClassCFIJumpTable: "CFI jump table",
	ClassCFIPreamble:  "CFI preamble",
	ClassPadding:      "padding",
	ClassInvalid:      "invalid",
}

// String returns the class in one or two words.
func (c Class) String() string {
	if c < 0 || int(c) >= len(classNames) {
		return fmt.Sprintf("Class(%d)", int(c))
	}
	return classNames[c]
}

// IsFunction returns whether a symbol of this class is a function of its own:
// something that is called and returns.
func (c Class) IsFunction() bool { return c < ClassPart }

// prefixes are put in front of a whole name.
var prefixes = []struct {
	name  string
	class Class
}{
	{"__pfx_", ClassPadding},
	{"__cfi_", ClassCFIPreamble},
}

// number says what may follow a suffix.
type number int

const (
	noNumber    number = iota
	mayNumber          // .cold and .cold.1
	needsNumber        // .isra.0
	anything           // .llvm., after which the kernel looks at nothing
)

// suffixes are the known words between dots.
var suffixes = map[string]struct {
	class  Class
	number number
}{
	"isra":       {ClassClone, needsNumber}, // GCC: arguments removed or passed by value
	"constprop":  {ClassClone, needsNumber}, // GCC: an argument is constant
	"part":       {ClassPart, needsNumber},  // GCC: partial inlining
	"cold":       {ClassCold, mayNumber},    // GCC and clang
	"lto_priv":   {ClassRenamed, mayNumber}, // GCC with LTO
	"localalias": {ClassRenamed, mayNumber}, // GCC
	"__uniq":     {ClassRenamed, needsNumber},
	"cfi":        {ClassRenamed, noNumber}, // clang: the body behind a jump table slot
	"cfi_jt":     {ClassCFIJumpTable, noNumber},
	"llvm":       {ClassLLVM, anything},
}

// Classify returns what name says about a text symbol. It looks at nothing but
// the name and allocates nothing.
func Classify(name string) Class {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p.name) && len(name) > len(p.name) {
			return p.class
		}
	}
	switch {
	case strings.HasPrefix(name, "__ftrace_invalid_address__"):
		return ClassInvalid
	case strings.HasPrefix(name, "__SCT__"):
		return ClassStaticCall
	}
	base := BaseName(name)
	if len(base) == len(name) {
		return ClassPlain
	}
	rest, class := name[len(base):], ClassPlain
	if isDollarHash(rest) {
		rest, class = rest[1+hashLen:], ClassHash
	}
	for rest != "" {
		var c Class
		c, rest = cutSuffix(rest)
		class = max(class, c)
	}
	return class
}

// cutSuffix returns the class of the first suffix in rest, which begins with a
// dot, and what follows.
func cutSuffix(rest string) (Class, string) {
	word, tail := cutDot(rest)
	s, ok := suffixes[word]
	num, after := cutDot(tail)
	numbered := tail != "" && isNumber(num)
	switch {
	case isHash(word):
		return ClassHash, tail
	case isNumber(word):
		return ClassRenamed, tail
	case !ok || s.number == needsNumber && !numbered:
		return ClassUnknown, tail
	case s.number == anything && tail != "", s.number != noNumber && numbered:
		return s.class, after
	}
	return s.class, tail
}

// cutDot returns the word after the dot that s begins with, and the rest from
// the next dot on.
func cutDot(s string) (word, rest string) {
	if s == "" {
		return "", ""
	}
	if i := strings.IndexByte(s[1:], '.'); i >= 0 {
		return s[1 : 1+i], s[1+i:]
	}
	return s[1:], ""
}

// BaseName returns name without what compilers append: up to the first dot, or
// up to '$' and 32 hexadecimal digits. A dot at the beginning is part of the
// name.
func BaseName(name string) string {
	if name == "" {
		return ""
	}
	if i := strings.IndexByte(name[1:], '.'); i >= 0 {
		name = name[:1+i]
	}
	if i := len(name) - 1 - hashLen; i > 0 && isDollarHash(name[i:]) {
		return name[:i]
	}
	return name
}

// Suffix returns what [BaseName] leaves out of name.
func Suffix(name string) string { return name[len(BaseName(name)):] }

// TrimLLVM returns name up to ".llvm.", whatever follows that, and the whole
// name if it has none. By this rule the kernel looks names up when it is built
// with clang's LTO (cleanup_symbol_name() in kernel/kallsyms.c).
func TrimLLVM(name string) string {
	if before, _, ok := strings.Cut(name, ".llvm."); ok {
		return before
	}
	return name
}

// trimPrefix returns name without __pfx_ or __cfi_.
func trimPrefix(name string) string {
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(name, p.name); ok && rest != "" {
			return rest
		}
	}
	return name
}

const hashLen = 32

func isHash(s string) bool {
	if len(s) != hashLen {
		return false
	}
	for i := range len(s) {
		if !isHex(s[i]) {
			return false
		}
	}
	return true
}

// isDollarHash returns whether s begins with '$' and a hash and goes on with
// nothing or another suffix.
func isDollarHash(s string) bool {
	return len(s) > hashLen && s[0] == '$' && isHash(s[1:1+hashLen]) && (len(s) == 1+hashLen || s[1+hashLen] == '.')
}

func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
