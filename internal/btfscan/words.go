package btfscan

import (
	"fmt"
	"strings"
)

// anonymous stands for the name of a struct, union or enum without one.
const anonymous = "{...}"

// typeWords cuts a C type into names and signs, without qualifiers and tags.
// The words of an integer type become one, see integerName.
func typeWords(s string) ([]string, error) {
	var words []string
	var integer []string
	flush := func() {
		if len(integer) > 0 {
			words = append(words, integerName(strings.Join(integer, " ")))
			integer = nil
		}
	}
	for {
		s = strings.TrimLeft(s, " \t\r\n")
		if s == "" {
			flush()
			return words, nil
		}
		n := wordLen(s)
		if n == 0 {
			return nil, fmt.Errorf("unexpected %q, write the type as in C: \"struct file *\"", s[:1])
		}
		word := s[:n]
		s = s[n:]
		switch {
		case isDecoration(word):
		case isIntegerWord(word):
			integer = append(integer, word)
		default:
			flush()
			words = append(words, word)
		}
	}
}

// wordLen returns the length of the name or sign at the start of s.
func wordLen(s string) int {
	switch {
	case strings.HasPrefix(s, anonymous):
		return len(anonymous)
	case strings.HasPrefix(s, "..."):
		return 3
	case strings.IndexByte("*()[],", s[0]) >= 0:
		return 1
	}
	n := 0
	for n < len(s) && isNameByte(s[n]) {
		n++
	}
	return n
}

// isNameByte takes Rust names and those beyond ASCII as well.
func isNameByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return c >= 0x80 || strings.IndexByte("_$.:<>", c) >= 0
}

func isWord(s string) bool { return s == anonymous || s != "..." && isNameByte(s[0]) }

func isTag(s string) bool { return s == "struct" || s == "union" || s == "enum" }

// isDecoration knows the qualifiers and, as the kernel writes them, type tags.
func isDecoration(word string) bool {
	switch word {
	case "const", "volatile", "restrict", "__restrict", "__user", "__rcu", "__percpu", "__kptr", "__iomem":
		return true
	}
	return false
}

func isIntegerWord(word string) bool {
	switch word {
	case "signed", "unsigned", "short", "long", "int", "char":
		return true
	}
	return false
}

// integerName gives all spellings of an integer type the same form: the
// compiler's "long unsigned int" and "unsigned long" become the latter. Other
// names stay as they are.
func integerName(name string) string {
	if !strings.Contains(name, " ") {
		switch name {
		case "signed":
			return "int"
		case "unsigned":
			return "unsigned int"
		}
		return name
	}
	var n struct{ signed, unsigned, short, long, char int }
	for word := range strings.FieldsSeq(name) {
		switch word {
		case "signed":
			n.signed++
		case "unsigned":
			n.unsigned++
		case "short":
			n.short++
		case "long":
			n.long++
		case "char":
			n.char++
		case "int":
		default:
			return name
		}
	}
	size := "int"
	switch {
	case n.char > 0:
		size = "char"
	case n.short > 0:
		size = "short"
	case n.long > 1:
		size = "long long"
	case n.long > 0:
		size = "long"
	}
	switch {
	case n.unsigned > 0:
		return "unsigned " + size
	case n.signed > 0 && n.char > 0:
		return "signed char"
	}
	return size
}
