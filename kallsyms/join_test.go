package kallsyms

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// joinTwin looks at every symbol for every name.
func joinTwin(t *Table, name string) []int {
	var found []int
	for i, s := range t.All() {
		if s.Name == name {
			found = append(found, i)
		}
	}
	return found
}

func checkJoin(t *testing.T, tab *Table, wanted []string) {
	t.Helper()
	j := tab.Join(len(wanted), func(i int) string { return wanted[i] })
	for i, name := range wanted {
		qt.Assert(t, qt.DeepEquals(j.AppendSymbols(nil, i), joinTwin(tab, name)), qt.Commentf("wanted %d, %q", i, name))
	}
}

func TestJoin(t *testing.T) {
	tab := mustParse(t, "10 t a", "20 t b", "30 t a", "40 d c\t[m]", "50 t a\t[m]", "60 t b\t[m]")
	checkJoin(t, tab, nil)
	checkJoin(t, tab, []string{"a"})
	checkJoin(t, tab, []string{"c", "none", "a", "b", "a", "", "none"})
	checkJoin(t, new(Table), []string{"a", "a"})
}

func TestJoinManyChunks(t *testing.T) {
	tab := mustParseBytes(t, generate(bigList{symbols: 3 * chunkLen, modules: 3}))
	r := rand.New(rand.NewPCG(3, 4))
	wanted := []string{"dup_1", "none", "dup_1"}
	for range 100 {
		wanted = append(wanted, tab.Name(r.IntN(tab.Len())))
	}
	checkJoin(t, tab, wanted)
}

// Many symbols of one name that is wanted many times must cost no more than as
// many names.
func TestJoinManyDuplicates(t *testing.T) {
	const n = 200_000
	tab := mustParseBytes(t, []byte(strings.Repeat("ffffffff81000000 t same\n", n)))
	j := tab.Join(n, func(int) string { return "same" })
	qt.Assert(t, qt.HasLen(j.AppendSymbols(nil, n-1), n))
}

// FuzzJoin takes a symbol list and wanted names as lines.
func FuzzJoin(f *testing.F) {
	f.Add([]byte("ffffffff81000000 t a\nffffffff81000010 t b\nffffffffc0000000 t a\t[m]\n"), "a\nb\nc\na")
	f.Add([]byte("ffffffff81000000 t a\n"), "")
	f.Fuzz(func(t *testing.T, text []byte, wanted string) {
		if len(text) > 1<<13 || len(wanted) > 1<<12 {
			return // the twin is quadratic
		}
		tab, err := Parse(text, Options{Lenient: true})
		if err != nil {
			return
		}
		checkJoin(t, tab, strings.Split(wanted, "\n"))
	})
}
