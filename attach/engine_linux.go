package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
)

// maxCalls bounds the search for refused targets when nothing else is said.
const maxCalls = 2000

// maxPieces is how many links may be left after a search; more are replaced by
// one.
const maxPieces = 2

// minPiece is how few targets are not halved for lack of memory.
const minPiece = 64

// attachGroup loads the program of a mechanism and attaches it to the group.
func (a *Attachment) attachGroup(ctx context.Context, l *loader, g *group, o Options) (err error) {
	defer func() { err = underLockdown(l.kernel, err) }()
	a.progress(Progress{PhaseLoad, 0, len(g.indexes)})
	if g.mechanism.ByBTF() {
		if err := a.findIDs(l, g, o); err != nil || len(g.indexes) == 0 {
			return err
		}
		defer func() { err = errors.Join(err, g.object.Close()) }()
	}
	m, err := newLinker(l, g)
	if err != nil {
		return err
	}
	if r, ok := m.(interface{ release() error }); ok {
		defer func() { err = errors.Join(err, r.release()) }()
	}
	s := &search{ctx: ctx, linker: m, group: g, options: o, progress: a.progress}
	if s.options.MaxCalls <= 0 {
		s.options.MaxCalls = maxCalls
	}
	err = s.run()
	a.calls += s.calls
	a.links = append(a.links, s.links()...)
	a.programs = append(a.programs, m.programs()...)
	a.refuse(s.refused)
	return err
}

// findIDs opens the BTF object of a group and finds the ids of its targets.
func (a *Attachment) findIDs(l *loader, g *group, o Options) (err error) {
	refused := g.findIDs(l.kernel, o.Unsafe)
	if len(refused) > 0 && o.Strict {
		return &refused[0]
	}
	a.refuse(refused)
	if len(g.indexes) > 0 {
		g.object, err = openObject(g.module)
	}
	return err
}

func (a *Attachment) refuse(refused []Refused) {
	a.refused = append(a.refused, refused...)
	slices.SortFunc(a.refused, func(x, y Refused) int { return x.Index - y.Index })
}

// A search attaches a group and finds the targets that the kernel refuses.
type search struct {
	ctx      context.Context
	linker   linker
	group    *group
	options  Options
	progress func(Progress)

	calls    int  // of links, failed ones too
	limit    int  // of calls; 0 is none
	apart    bool // one link for all is more than the kernel can make
	attached int
	pieces   []piece
	refused  []Refused
}

// A piece is targets that were attached together.
type piece struct {
	link    link.Link
	indexes []int
}

func (s *search) links() []link.Link {
	links := make([]link.Link, len(s.pieces))
	for i, p := range s.pieces {
		links[i] = p.link
	}
	return links
}

// errGaveUp ends a search that takes too many calls.
var errGaveUp = errors.New("too many system calls")

func (s *search) run() error {
	if s.group.mechanism.PerFunction() {
		return s.each()
	}
	blame, err := s.try(s.group.indexes)
	if err == nil && blame != nil {
		err = s.sift(s.group.indexes, blame)
	}
	switch {
	case errors.Is(err, errGaveUp):
		s.giveUp()
	case err != nil:
		return err
	}
	return s.merge()
}

// each attaches the targets one by one. When none of their programs loads
// because of what is in it, that is the error.
func (s *search) each() error {
	for _, index := range s.group.indexes {
		blame, err := s.try([]int{index})
		if err == nil && blame != nil {
			err = s.refuse(index, blame)
		}
		if err != nil {
			return err
		}
	}
	if s.attached == 0 && len(s.refused) > 0 && programIsBad(s.refused[0].Err) {
		return s.refused[0].Err
	}
	return nil
}

// sift attaches targets of which one is to blame that one link for all is not
// possible. It goes through them in batches as large as refused ones were apart
// so far, and halves a batch for the first that is refused: some
// log2(targets/refused)+2 calls for each.
func (s *search) sift(all []int, blame error) error {
	s.limit = s.options.MaxCalls
	rest, batch := all, all
	for found := 0; ; {
		n := len(batch)
		if blame != nil {
			first, err := s.first(batch, blame)
			if err != nil {
				return err
			}
			n, found = first+1, found+1
		}
		if rest = rest[n:]; len(rest) == 0 {
			return nil
		}
		batch = rest[:min(len(rest), max(1, (len(all)-len(rest))/found))]
		var err error
		if blame, err = s.try(batch); err != nil {
			return err
		}
	}
}

// first attaches what is in front of the first target that is refused, refuses
// that, and returns its place in the batch. One of the batch is known to be
// refused, with this error.
func (s *search) first(batch []int, blame error) (int, error) {
	low, high := 0, len(batch)
	for high-low > 1 {
		mid := low + (high-low)/2
		b, err := s.try(batch[low:mid])
		switch {
		case err != nil:
			return low, err
		case b != nil:
			high, blame = mid, b
		default:
			low, blame = mid, nil
		}
	}
	if blame == nil { // not tried alone
		var err error
		if blame, err = s.try(batch[low:high]); err != nil || blame == nil {
			return low, err
		}
	}
	return low, s.refuse(batch[low], blame)
}

// try attaches the targets by one link. When one of them is to blame that this
// is not possible it returns what the kernel answered as blame.
func (s *search) try(indexes []int) (blame, err error) {
	if s.limit > 0 && s.calls >= s.limit {
		return nil, errGaveUp
	}
	s.progress(Progress{PhaseAttach, s.attached, len(s.group.indexes)})
	l, err := s.link(indexes)
	switch {
	case err == nil:
		s.pieces = append(s.pieces, piece{l, indexes})
		s.attached += len(indexes)
		s.progress(Progress{PhaseAttach, s.attached, len(s.group.indexes)})
		return nil, nil
	case s.ctx.Err() != nil:
		return nil, s.ctx.Err()
	case isTooMuch(err) && len(indexes) > minPiece:
		return nil, s.split(indexes)
	case !s.linker.blames(err):
		return nil, s.linker.explain(outOf(err, len(indexes)))
	}
	return err, nil
}

// retries and pause are for EAGAIN, which a live patch in progress gives.
const (
	retries = 20
	pause   = 10 * time.Millisecond
)

func (s *search) link(indexes []int) (l link.Link, err error) {
	for range retries {
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
		s.calls++
		if l, err = s.linker.link(indexes); !errors.Is(err, unix.EAGAIN) {
			return l, err
		}
		select {
		case <-s.ctx.Done():
		case <-time.After(pause):
		}
	}
	return l, err
}

func isTooMuch(err error) bool { return errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.E2BIG) }

// maxLinkTargets is MAX_KPROBE_MULTI_CNT of kernel/trace/bpf_trace.c, since v6.8
// and in older stable kernels. More are spread over several links.
const maxLinkTargets = 1 << 20

// outOf says what a resource is short for.
func outOf(err error, targets int) error {
	switch {
	case errors.Is(err, unix.ENOMEM):
		return fmt.Errorf("%d targets: %w%s: the kernel, or this process's memory cgroup, has no room for them; narrow the patterns", targets, err, number(err))
	case errors.Is(err, unix.E2BIG):
		return fmt.Errorf("%d targets: %w%s: more than one link takes, %d of kprobe.multi (MAX_KPROBE_MULTI_CNT); narrow the patterns", targets, err, number(err), maxLinkTargets)
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("%w%s: each target takes two file descriptors and %d are allowed; raise RLIMIT_NOFILE (ulimit -n) or narrow the patterns", err, number(err), fileLimit())
	}
	return err
}

// split attaches by two links what is too much for one.
func (s *search) split(indexes []int) error {
	s.apart = true
	for _, half := range [][]int{indexes[:len(indexes)/2], indexes[len(indexes)/2:]} {
		blame, err := s.try(half)
		if err == nil && blame != nil {
			err = s.sift(half, blame)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// merge replaces many links by one. The new one is there before the old ones
// go, so no call is missed, and none is counted before Start.
//
// Links by BTF stay as they are: a program cannot be on a function twice there
// (EBUSY), and making a link of everything anew takes half a minute.
func (s *search) merge() error {
	if len(s.pieces) <= maxPieces || s.apart || s.group.mechanism.ByBTF() {
		return nil
	}
	old, attached := s.pieces, s.attached
	var all []int
	for _, p := range old {
		all = append(all, p.indexes...)
	}
	slices.Sort(all)
	s.pieces, s.attached, s.limit = nil, 0, 0
	if blame, err := s.try(all); err != nil || blame != nil {
		s.pieces, s.attached = append(s.pieces, old...), attached
		return err
	}
	links := make([]io.Closer, len(old))
	for i, p := range old {
		links[i] = p.link
	}
	return closeAll(links, func(int) {})
}

// refuse notes a target that the kernel did not take; with Strict that is an
// error.
func (s *search) refuse(index int, blame error) error {
	t := s.group.targets[index]
	r := Refused{index, t, kallscope.ReasonRefused, s.linker.refusal(&t, blame)}
	if s.options.Strict {
		return &r
	}
	s.refused = append(s.refused, r)
	return nil
}

// giveUp refuses what has not been attached or refused.
func (s *search) giveUp() {
	done := make(map[int]bool, len(s.group.indexes))
	for _, p := range s.pieces {
		for _, i := range p.indexes {
			done[i] = true
		}
	}
	for _, r := range s.refused {
		done[r.Index] = true
	}
	err := fmt.Errorf("gave up after %d system calls", s.calls)
	for _, i := range s.group.indexes {
		if !done[i] {
			s.refused = append(s.refused, Refused{i, s.group.targets[i], kallscope.ReasonNotTried, err})
		}
	}
}
