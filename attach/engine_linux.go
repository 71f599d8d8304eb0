package attach

import (
	"context"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/kallscope/kallscope"
)

// maxCalls bounds the search for refused targets when nothing else is said.
const maxCalls = 2000

// maxPieces is how many links may be left after a search; more are replaced by
// one.
const maxPieces = 2

// A group is the targets of one mechanism.
type group struct {
	mechanism kallscope.Mechanism
	targets   []kallscope.Target // of the plan
	indexes   []int              // of the group's targets in the plan
}

// A linker makes one link for targets of the plan, given by their indexes. There
// is one for each mechanism.
type linker interface {
	link(indexes []int) (link.Link, error)
	// blames reports whether an error is about one of the targets, and not
	// about the mechanism or the process.
	blames(error) bool
	// refusal turns such an error, for one target, into words.
	refusal(error) error
	// explain turns any other error into words.
	explain(error) error
}

// attachGroup loads the program of a mechanism and attaches it to the group.
func (a *Attachment) attachGroup(ctx context.Context, programs Programs, g *group, o Options) error {
	a.progress(Progress{PhaseLoad, 0, len(g.indexes)})
	m, err := newLinker(programs, g)
	if err != nil {
		return err
	}
	a.programs = append(a.programs, m.program)
	if o.MaxCalls <= 0 {
		o.MaxCalls = maxCalls
	}
	s := &search{ctx: ctx, linker: m, group: g, options: o, progress: a.progress}
	err = s.run()
	a.links = append(a.links, s.links()...)
	a.refused = append(a.refused, s.refused...)
	slices.SortFunc(a.refused, func(x, y Refused) int { return x.Index - y.Index })
	return err
}

// load loads a spec with the maps that its instructions name.
func load(spec *ebpf.ProgramSpec, maps map[string]*ebpf.Map) (*ebpf.Program, error) {
	spec = spec.Copy()
	for i := range spec.Instructions {
		ins := &spec.Instructions[i]
		if !ins.IsLoadFromMap() || ins.Map() != nil {
			continue
		}
		m, ok := maps[ins.Reference()]
		if !ok {
			return nil, fmt.Errorf("load program %s: it refers to map %q, which is not among the maps", spec.Name, ins.Reference())
		}
		if err := ins.AssociateMap(m); err != nil {
			return nil, fmt.Errorf("load program %s: map %s: %w", spec.Name, ins.Reference(), err)
		}
	}
	prog, err := ebpf.NewProgram(spec)
	if err != nil {
		return nil, fmt.Errorf("load program %s: %w", spec.Name, err)
	}
	return prog, nil
}

// A search attaches a group and finds the targets that the kernel refuses.
type search struct {
	ctx      context.Context
	linker   linker
	group    *group
	options  Options
	progress func(Progress)

	calls   int
	pieces  []piece
	refused []Refused
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
	ok, err := s.try(s.group.indexes)
	if err != nil || ok {
		return err
	}
	if err := s.halve(s.group.indexes); err != nil {
		return err
	}
	return s.merge()
}

// try attaches the targets by one link, and is false when one of them is to
// blame that this is not possible.
func (s *search) try(indexes []int) (bool, error) {
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	if s.calls >= s.options.MaxCalls {
		s.refuse(indexes, kallscope.ReasonNotTried, fmt.Errorf("gave up after %d system calls", s.calls))
		return true, nil
	}
	s.calls++
	s.progress(Progress{PhaseAttach, s.attached(), len(s.group.indexes)})
	l, err := s.linker.link(indexes)
	switch {
	case err == nil:
		s.pieces = append(s.pieces, piece{l, indexes})
		s.progress(Progress{PhaseAttach, s.attached(), len(s.group.indexes)})
		return true, nil
	case !s.linker.blames(err):
		return false, s.linker.explain(err)
	case s.options.Strict && len(indexes) == 1:
		return false, &Refused{indexes[0], s.group.targets[indexes[0]], kallscope.ReasonRefused, s.linker.refusal(err)}
	case len(indexes) == 1:
		s.refuse(indexes, kallscope.ReasonRefused, s.linker.refusal(err))
	}
	return false, nil
}

// halve attaches targets of which one is known to be refused. When the first
// half is taken as it is, the second needs no try to be known as guilty.
func (s *search) halve(indexes []int) error {
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
	if len(s.pieces) <= maxPieces {
		return nil
	}
	old := s.pieces
	var all []int
	for _, p := range old {
		all = append(all, p.indexes...)
	}
	slices.Sort(all)
	s.pieces = nil
	s.options.MaxCalls = s.calls + 1
	if ok, err := s.try(all); err != nil || !ok {
		s.pieces = append(s.pieces, old...)
		return err
	}
	links := make([]link.Link, len(old))
	for i, p := range old {
		links[i] = p.link
	}
	return closeAll(links)
}

func (s *search) refuse(indexes []int, r kallscope.Reason, err error) {
	for _, i := range indexes {
		s.refused = append(s.refused, Refused{i, s.group.targets[i], r, err})
	}
}

func (s *search) attached() int {
	n := 0
	for _, p := range s.pieces {
		n += len(p.indexes)
	}
	return n
}
