package nameindex

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

func of(names []string) *Index { return New(len(names), func(i int) string { return names[i] }) }

// naive is the slow twin.
func naive(names []string, name string) []int {
	var found []int
	for i, n := range names {
		if n == name {
			found = append(found, i)
		}
	}
	return found
}

// check compares all ways to look names up with the twin.
func check(t *testing.T, names, asked []string) {
	t.Helper()
	x := of(names)
	for asked := range slices.Chunk(asked, Batch) {
		var found [Batch]int
		x.FirstOf(asked, &found)
		for k, name := range asked {
			want := naive(names, name)
			qt.Assert(t, qt.DeepEquals(slices.Collect(x.All(name)), want), qt.Commentf("%q", name))
			first := -1
			if len(want) > 0 {
				first = want[0]
			}
			qt.Assert(t, qt.Equals(x.First(name), first), qt.Commentf("%q", name))
			qt.Assert(t, qt.Equals(found[k], first), qt.Commentf("%q in a batch", name))
		}
	}
}

func TestIndex(t *testing.T) {
	check(t, nil, []string{"", "a"})
	check(t, []string{""}, []string{"", "a"})
	check(t, []string{"a", "b", "a", "", "a", "c", "b", "last"}, []string{"a", "b", "c", "d", "", "last"})
	var names, asked []string
	for i := range 3000 {
		names = append(names, fmt.Sprintf("fn_%d", i%2900))
		asked = append(asked, fmt.Sprintf("fn_%d", i))
	}
	check(t, names, asked)
}

func TestAllStops(t *testing.T) {
	for i := range of([]string{"a", "b", "b", "b"}).All("b") {
		qt.Assert(t, qt.Equals(i, 1))
		break
	}
}

// TestSameNameIsLinear would take minutes if equal names were probed over.
func TestSameNameIsLinear(t *testing.T) {
	const n = 300_000
	x := New(n, func(int) string { return "same" })
	count := 0
	for i := range x.All("same") {
		qt.Assert(t, qt.Equals(i, count))
		count++
	}
	qt.Assert(t, qt.Equals(count, n))
}

// TestFullBuckets makes sure that the tests above reach names that had no place
// in their bucket.
func TestFullBuckets(t *testing.T) {
	x := New(10_000, func(i int) string { return fmt.Sprint(i) })
	full := 0
	for _, b := range x.buckets {
		if b.numbers[3]&passed != 0 {
			full++
		}
	}
	qt.Assert(t, qt.IsTrue(full > 50), qt.Commentf("%d of %d", full, len(x.buckets)))
}

// FuzzIndex takes names and questions as lines.
func FuzzIndex(f *testing.F) {
	f.Add("a\nb\na", "a\nc\n")
	f.Add("", "")
	f.Add(strings.Repeat("x\ny\n", 100), "x")
	f.Fuzz(func(t *testing.T, names, asked string) {
		if len(names) > 1<<12 || len(asked) > 1<<12 {
			return // the twin is quadratic
		}
		list := strings.Split(names, "\n")
		check(t, list, append(strings.Split(asked, "\n"), list...))
	})
}

func BenchmarkNew(b *testing.B) {
	names := make([]string, 60_000)
	for i := range names {
		names[i] = fmt.Sprintf("function_of_a_kernel_%d", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		of(names)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(names)), "ns/name")
}
