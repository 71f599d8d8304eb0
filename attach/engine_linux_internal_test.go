package attach

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
)

// Calls is for the tests of the real kernel.
func (a *Attachment) Calls() int { return a.calls }

// fakeKernel refuses some targets, and more than a number of them at a time.
type fakeKernel struct {
	bad   map[int]bool
	max   int
	again int // EAGAIN so many times

	mu       sync.Mutex // links are closed at the same time
	attached map[int]int
	open     int
}

type fakeLink struct {
	link.Link
	kernel  *fakeKernel
	indexes []int
}

func (l *fakeLink) Close() error {
	l.kernel.mu.Lock()
	defer l.kernel.mu.Unlock()
	l.kernel.open--
	for _, i := range l.indexes {
		l.kernel.attached[i]--
	}
	return nil
}

func (k *fakeKernel) link(indexes []int) (link.Link, error) {
	if k.again > 0 {
		k.again--
		return nil, unix.EAGAIN
	}
	if slices.ContainsFunc(indexes, func(i int) bool { return k.bad[i] }) {
		return nil, unix.EINVAL
	}
	if k.max > 0 && len(indexes) > k.max {
		return nil, unix.ENOMEM
	}
	for _, i := range indexes {
		k.attached[i]++
	}
	k.open++
	return &fakeLink{kernel: k, indexes: slices.Clone(indexes)}, nil
}

func (k *fakeKernel) programs() []*ebpf.Program { return nil }
func (k *fakeKernel) blames(err error) bool     { return !aboutProcess(err) }
func (k *fakeKernel) refusal(_ *kallscope.Target, err error) error {
	return err
}
func (k *fakeKernel) explain(err error) error { return err }

// newSearch searches among n targets.
func newSearch(k *fakeKernel, n int, o Options) *search {
	k.attached = make(map[int]int)
	g := &group{mechanism: kallscope.KprobeMulti, targets: make([]kallscope.Target, n)}
	for i := range n {
		g.indexes = append(g.indexes, i)
	}
	if o.MaxCalls == 0 {
		o.MaxCalls = maxCalls
	}
	return &search{ctx: context.Background(), linker: k, group: g, options: o, progress: func(Progress) {}}
}

// check compares a search with what asking for each target alone would give.
func (k *fakeKernel) check(t *testing.T, s *search) {
	t.Helper()
	refused := make(map[int]bool)
	for _, r := range s.refused {
		if refused[r.Index] {
			t.Fatalf("%d refused twice", r.Index)
		}
		refused[r.Index] = true
	}
	for i := range s.group.targets {
		want := 1
		if k.bad[i] {
			want = 0
		}
		if refused[i] != k.bad[i] || k.attached[i] != want {
			t.Fatalf("target %d: refused %v, attached by %d links, bad %v", i, refused[i], k.attached[i], k.bad[i])
		}
	}
	qt.Assert(t, qt.Equals(k.open, len(s.pieces)))
	qt.Assert(t, qt.Equals(s.attached+len(s.refused), len(s.group.targets)))
}

func randomBad(n, bad int, seed uint64) map[int]bool {
	m := make(map[int]bool)
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(n)[:bad] {
		m[i] = true
	}
	return m
}

// TestSearchCalls: 25 among 40,000 are found with at most 450 calls, and two
// links are left.
func TestSearchCalls(t *testing.T) {
	for _, test := range []struct{ n, bad, calls int }{{40_000, 0, 1}, {40_000, 1, 26}, {40_000, 25, 380}, {5000, 200, 1500}, {1000, 1000, 2011}} {
		for seed := range uint64(5) {
			k := &fakeKernel{bad: randomBad(test.n, test.bad, seed)}
			s := newSearch(k, test.n, Options{MaxCalls: 10_000})
			qt.Assert(t, qt.IsNil(s.run()))
			k.check(t, s)
			qt.Assert(t, qt.IsTrue(s.calls <= test.calls), qt.Commentf("%d of %d: %d calls", test.bad, test.n, s.calls))
			qt.Assert(t, qt.IsTrue(len(s.pieces) <= maxPieces))
		}
	}
}

// TestSearchMemory: what is too much for one link is spread over several, and
// refused targets are found all the same.
func TestSearchMemory(t *testing.T) {
	k := &fakeKernel{bad: randomBad(1000, 9, 1), max: 100, again: 3}
	s := newSearch(k, 1000, Options{})
	qt.Assert(t, qt.IsNil(s.run()))
	k.check(t, s)
	qt.Assert(t, qt.IsTrue(len(s.pieces) >= 10))

	k = &fakeKernel{max: 10}
	err := newSearch(k, 1000, Options{}).run()
	qt.Assert(t, qt.ErrorMatches(err, ".* targets: cannot allocate memory .ENOMEM.: .*"))
}

func TestSearchGivesUp(t *testing.T) {
	k := &fakeKernel{bad: randomBad(1000, 500, 1)}
	s := newSearch(k, 1000, Options{MaxCalls: 50})
	qt.Assert(t, qt.IsNil(s.run()))
	qt.Assert(t, qt.Equals(s.attached+len(s.refused), 1000))
	qt.Assert(t, qt.IsTrue(s.calls <= 51))
	qt.Assert(t, qt.Equals(s.refused[len(s.refused)-1].Reason, kallscope.ReasonNotTried))
}

// TestSearchCanceled: no target is to blame for the end of a context.
func TestSearchCanceled(t *testing.T) {
	for _, m := range []kallscope.Mechanism{kallscope.KprobeMulti, kallscope.Fentry} {
		k := &fakeKernel{again: 1 << 30}
		s := newSearch(k, 10, Options{})
		s.group.mechanism = m
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.ctx = ctx
		qt.Assert(t, qt.ErrorIs(s.run(), context.Canceled))
		qt.Assert(t, qt.HasLen(s.refused, 0))
	}
}

// FuzzSearch compares the search with asking for each target alone.
func FuzzSearch(f *testing.F) {
	f.Add(uint16(100), uint16(3), uint8(0), uint64(1))
	f.Add(uint16(1), uint16(1), uint8(0), uint64(1))
	f.Add(uint16(300), uint16(300), uint8(70), uint64(2))
	f.Add(uint16(500), uint16(0), uint8(200), uint64(3))
	f.Fuzz(func(t *testing.T, n, bad uint16, most uint8, seed uint64) {
		n = n%1000 + 1
		k := &fakeKernel{bad: randomBad(int(n), int(bad%(n+1)), seed)}
		if most > minPiece {
			k.max = int(most)
		}
		s := newSearch(k, int(n), Options{MaxCalls: 1 << 20})
		qt.Assert(t, qt.IsNil(s.run()))
		k.check(t, s)
	})
}
