// Package render turns results into text: tables for people, JSON lines for
// programs. It writes data and knows no kernel.
package render

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kallscope/kallscope"
)

// Number returns n with commas between thousands.
func Number[T int | uint64](n T) string {
	sign, digits := "", strconv.FormatUint(uint64(n), 10)
	if n < 0 {
		sign, digits = "-", strconv.FormatUint(-uint64(n), 10)
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Plural returns "1 call", "2 calls".
func Plural[T int | uint64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Number(n) + " " + noun + "s"
}

// Duration returns d with three or so digits: "41 ms", "4.1 s".
func Duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 100*time.Second-50*time.Millisecond: // below it is 100.0
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

// Bytes returns a size with two or so digits: "312 B", "41 kB", "1.6 MB".
func Bytes(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 999_500:
		return fmt.Sprintf("%d kB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// Address returns an address as the kernel prints it, or "-" for one that is
// not known.
func Address(addr uint64) string {
	if addr == 0 {
		return "-"
	}
	return fmt.Sprintf("0x%016x", addr)
}

// Reasons returns the counts of a plan's skipped candidates, most first:
// "49,133 padding, 7,012 no-site".
func Reasons(by map[kallscope.Reason]int) string {
	reasons := make([]kallscope.Reason, 0, len(by))
	for r := range by {
		reasons = append(reasons, r)
	}
	slices.SortFunc(reasons, func(a, b kallscope.Reason) int {
		if by[a] != by[b] {
			return by[b] - by[a]
		}
		return int(a) - int(b)
	})
	var parts []string
	for _, r := range reasons {
		parts = append(parts, Number(by[r])+" "+r.String())
	}
	return strings.Join(parts, ", ")
}

// A Row is a line of a table: its cells.
type Row []string

// Table writes rows under a header, columns two blanks apart. Columns whose
// header begins with ">" are aligned to the right; the last column is not
// padded. Rows come twice, to measure and to write, so that a hundred thousand
// need not be kept. A row must have a cell for each column: else the error says so,
// and nothing is written.
func Table(w io.Writer, header Row, rows func(yield func(Row) bool)) error {
	widths := make([]int, len(header))
	right := make([]bool, len(header))
	titles := make(Row, len(header))
	for i, h := range header {
		titles[i], right[i] = strings.CutPrefix(h, ">")
		widths[i] = utf8.RuneCountInString(titles[i])
	}
	for row := range rows {
		if len(row) != len(header) {
			return fmt.Errorf("table: a row of %d cells under %d columns", len(row), len(header))
		}
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	out := bufio.NewWriterSize(w, 64<<10)
	line := func(row Row) {
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case right[i]:
				out.WriteString(pad + cell)
			case i == len(row)-1:
				out.WriteString(cell)
			default:
				out.WriteString(cell + pad)
			}
			if i < len(row)-1 {
				out.WriteString("  ")
			}
		}
		out.WriteByte('\n')
	}
	line(titles)
	for row := range rows {
		line(row)
	}
	return out.Flush()
}

// JSONLines writes one object a line.
func JSONLines(w io.Writer, records func(yield func(any) bool)) error {
	out := bufio.NewWriterSize(w, 64<<10)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for record := range records {
		if err := enc.Encode(record); err != nil {
			return err
		}
	}
	return out.Flush()
}

// AppendString appends s as JSON does, with <, > and & as they are.
func AppendString(b []byte, s string) []byte {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\' {
			return appendEscaped(b, s)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func appendEscaped(b []byte, s string) []byte {
	out := bytes.NewBuffer(b)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // strings have no errors
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
