package pattern

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxFileErrors is how many wrong lines one error of ParseFile lists.
const maxFileErrors = 10

// maxLine is how long a line may be, in bytes.
const maxLine = bufio.MaxScanTokenSize

// ParseFile returns the patterns of a file, one on each line, in order. Blanks around a
// pattern, empty lines, CRLF and a byte order mark do not matter.
//
// A # begins a comment at the start of a line, unless a digit follows, which is a BTF id:
// a mistyped id is an error and not a comment. After a pattern and a blank, # begins a
// comment in the same way.
//
// Wrong lines, up to ten, are reported together as file:line; each is a [*SyntaxError].
func ParseFile(r io.Reader, file string) ([]Pattern, error) {
	var patterns []Pattern
	var errs []error
	sc := bufio.NewScanner(r)
	n := 0
	for sc.Scan() {
		n++
		p, ok, err := parseLine(sc.Text(), n == 1)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", file, n, err))
		}
		if len(errs) > maxFileErrors {
			errs[maxFileErrors] = fmt.Errorf("%s: more than %d wrong lines; give a file with one pattern on each line", file, maxFileErrors)
			return nil, errors.Join(errs...)
		}
		if ok {
			patterns = append(patterns, p)
		}
	}
	if err := sc.Err(); err != nil {
		errs = append(errs, scanError(err, file, n+1))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return patterns, nil
}

func scanError(err error, file string, line int) error {
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%s:%d: line is longer than %d bytes: %w; give one pattern on each line", file, line, maxLine, err)
	}
	return fmt.Errorf("%s:%d: read patterns: %w", file, line, err)
}

// parseLine returns the pattern of a line; it is not ok when the line has none.
func parseLine(line string, first bool) (p Pattern, ok bool, err error) {
	if first {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	text := withoutComment(strings.Trim(line, " \t\r"))
	if text == "" {
		return Pattern{}, false, nil
	}
	p, err = Parse(text)
	return p, err == nil, err
}

// withoutComment cuts the line, trimmed, where a comment begins.
func withoutComment(line string) string {
	for i := 0; i < len(line); i++ {
		starts := i == 0 || line[i-1] == ' ' || line[i-1] == '\t'
		if line[i] == '#' && starts && !digitAt(line, i+1) {
			return strings.TrimRight(line[:i], " \t")
		}
	}
	return line
}

func digitAt(s string, i int) bool {
	return i < len(s) && '0' <= s[i] && s[i] <= '9'
}
