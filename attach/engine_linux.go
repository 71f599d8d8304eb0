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

	calls    int // of the search for refused targets
	halving  bool
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

func (s *search) run() error {
	if s.group.mechanism.PerFunction() {
		return s.each()
	}
	ok, err := s.try(s.group.indexes)
	if err != nil || ok {
		return err
	}
	if err := s.halve(s.group.indexes); err != nil {
		return err
	}
	return s.merge()
}

// each attaches the targets one by one. When none of their programs loads
// because of what is in it, that is the error.
func (s *search) each() error {
	for i := range s.group.indexes {
		if _, err := s.try(s.group.indexes[i : i+1]); err != nil {
			return err
		}
	}
	if s.attached == 0 && len(s.refused) > 0 && programIsBad(s.refused[0].Err) {
		return s.refused[0].Err
	}
	return nil
}

// try attaches the targets by one link, and is false when one of them is to
// blame that this is not possible.
func (s *search) try(indexes []int) (bool, error) {
	if s.halving {
		if s.calls >= s.options.MaxCalls {
			s.refuse(indexes, kallscope.ReasonNotTried, fmt.Errorf("gave up after %d system calls", s.calls))
			return true, nil
		}
		s.calls++
	}
	s.progress(Progress{PhaseAttach, s.attached, len(s.group.indexes)})
	l, err := s.link(indexes)
	switch {
	case err == nil:
		s.pieces = append(s.pieces, piece{l, indexes})
		s.attached += len(indexes)
		s.progress(Progress{PhaseAttach, s.attached, len(s.group.indexes)})
		return true, nil
	case isTooMuch(err) && len(indexes) > minPiece:
		return true, s.split(indexes)
	case !s.linker.blames(err):
		return false, s.linker.explain(outOf(err, len(indexes)))
	case s.options.Strict && len(indexes) == 1:
		return false, &Refused{indexes[0], s.group.targets[indexes[0]], kallscope.ReasonRefused, s.linker.refusal(err)}
	case len(indexes) == 1:
		s.refuse(indexes, kallscope.ReasonRefused, s.linker.refusal(err))
	}
	return false, nil
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

// outOf says what a resource is short for.
func outOf(err error, targets int) error {
	switch {
	case errors.Is(err, unix.ENOMEM):
		return fmt.Errorf("%d targets: %w: the kernel, or this process's memory cgroup, has no room for them; narrow the patterns", targets, err)
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("%w: each target takes file descriptors; raise RLIMIT_NOFILE or narrow the patterns", err)
	}
	return err
}

// split attaches by two links what is too much for one.
func (s *search) split(indexes []int) error {
	s.apart = true
	for _, half := range [][]int{indexes[:len(indexes)/2], indexes[len(indexes)/2:]} {
		ok, err := s.try(half)
		if err == nil && !ok {
			err = s.halve(half)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// halve attaches targets of which one is known to be refused. When the first
// half is taken as it is, the second needs no try to be known as guilty.
func (s *search) halve(indexes []int) error {
	s.halving = true
	if len(indexes) == 1 {
		return nil
	}
	first, second := indexes[:len(indexes)/2], indexes[len(indexes)/2:]
	innocent, err := s.try(first)
	if err != nil {
		return err
	}
	if innocent {
		return s.guilty(second)
	}
	if err := s.halve(first); err != nil {
		return err
	}
	innocent, err = s.try(second)
	if err != nil || innocent {
		return err
	}
	return s.halve(second)
}

// guilty goes on with targets that were not tried themselves. A single one is
// tried, for its error.
func (s *search) guilty(indexes []int) error {
	if len(indexes) > 1 {
		return s.halve(indexes)
	}
	_, err := s.try(indexes)
	return err
}

// merge replaces many links by one. The new one is there before the old ones
// go, so no call is missed, and none is counted before Start.
func (s *search) merge() error {
	if len(s.pieces) <= maxPieces || s.apart {
		return nil
	}
	old, attached := s.pieces, s.attached
	var all []int
	for _, p := range old {
		all = append(all, p.indexes...)
	}
	slices.Sort(all)
	s.pieces, s.attached, s.halving = nil, 0, false
	ok, err := s.try(all)
	if err != nil || !ok {
		s.pieces, s.attached = append(s.pieces, old...), attached
		return err
	}
	links := make([]io.Closer, len(old))
	for i, p := range old {
		links[i] = p.link
	}
	return closeAll(links, func(int) {})
}

func (s *search) refuse(indexes []int, r kallscope.Reason, err error) {
	for _, i := range indexes {
		s.refused = append(s.refused, Refused{i, s.group.targets[i], r, err})
	}
}
