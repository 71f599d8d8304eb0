package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sync/errgroup"

	"github.com/kallscope/kallscope"
)

// An Attachment is what is attached now. Its methods are safe for concurrent
// use.
type Attachment struct {
	targets  int
	refused  []Refused
	links    []link.Link
	programs []*ebpf.Program
	progress func(Progress)
	base     Missed // counted before Start
	calls    int    // that made links, or did not

	mu       sync.Mutex // guards what follows, and links and programs of Missed
	closed   bool
	closeErr error
}

func attachPlan(ctx context.Context, programs Programs, plan *kallscope.Plan, o Options) (_ *Attachment, err error) {
	kernel, err := runningKernel(plan.Kernel, o.Kernel)
	if err != nil {
		return nil, err
	}
	if err := checkTargets(plan.Targets); err != nil {
		return nil, err
	}
	a := &Attachment{targets: len(plan.Targets), progress: o.Progress}
	if a.progress == nil {
		a.progress = func(Progress) {}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	l := &loader{programs: programs, kernel: kernel, types: btf.NewCache(), causes: newCauses("/", kernel)}
	groups := groupsOf(plan.Targets)
	restore, err := raiseLimits(groups)
	if err != nil {
		return nil, err
	}
	defer restore()
	for _, g := range groups {
		if err := a.attachGroup(ctx, l, g, o); err != nil {
			return nil, fmt.Errorf("attach: %s: %w", g.mechanism, err)
		}
	}
	if a.base, err = a.missed(); err != nil {
		return nil, err
	}
	if o.Start != nil {
		if err := o.Start(); err != nil {
			return nil, fmt.Errorf("attach: start: %w", err)
		}
	}
	return a, nil
}

// runningKernel compares a plan's kernel with the running one, and returns the
// facts of that: known, when they are its.
func runningKernel(want kallscope.Identity, known *kallscope.Kernel) (*kallscope.Kernel, error) {
	running, err := kallscope.Live(kallscope.LiveOptions{})
	if err != nil {
		return nil, err
	}
	got := running.Identity()
	if got != want {
		return nil, fmt.Errorf("attach: plan of %s %s %s: %w; this is %s %s %s: make the plan anew here",
			want.Release, want.Arch, want.BuildID, kallscope.ErrOtherKernel, got.Release, got.Arch, got.BuildID)
	}
	if known != nil && known.Identity() == got {
		return known, nil
	}
	return running, nil
}

// checkTargets refuses what no plan of this package has: a target without a
// mechanism, and an address twice by one mechanism, of which the kernel would
// run one.
func checkTargets(targets []kallscope.Target) error {
	type place struct {
		addr      uint64
		mechanism kallscope.Mechanism
	}
	seen := make(map[place]int, len(targets))
	for i, t := range targets {
		if t.Mechanism == kallscope.MechanismAuto {
			return fmt.Errorf("attach: target %d, %s: mechanism %s is none to attach by", i, t.Func, t.Mechanism)
		}
		at := place{t.Addr + uint64(t.Offset), t.Mechanism}
		if first, twice := seen[at]; twice && t.Addr != 0 {
			return fmt.Errorf("attach: targets %d and %d have one address, %#x", first, i, at.addr)
		}
		seen[at] = i
	}
	return nil
}

// Attached returns the number of targets that were attached; Close does not
// change it.
func (a *Attachment) Attached() int { return a.targets - len(a.refused) }

// Refused returns the targets that the kernel did not take, in the order of
// the plan.
func (a *Attachment) Refused() []Refused { return a.refused }

// Links returns the links, for instance to pin them. They belong to the
// attachment: Close closes them.
func (a *Attachment) Links() []link.Link { return a.links }

// Missed returns the calls that were not seen since Start. It costs a few
// system calls, and fails once the attachment is closed.
func (a *Attachment) Missed() (Missed, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return Missed{}, errors.New("missed calls: the attachment is closed")
	}
	now, err := a.missed()
	if err != nil {
		return Missed{}, err
	}
	return Missed{now.Recursion - a.base.Recursion, now.Link - a.base.Link}, nil
}

func (a *Attachment) missed() (Missed, error) {
	var m Missed
	for _, p := range a.programs {
		stats, err := p.Stats()
		if err != nil {
			return m, fmt.Errorf("missed calls: program: %w", err)
		}
		m.Recursion += stats.RecursionMisses
	}
	for _, l := range a.links {
		n, err := linkMissed(l)
		if err != nil {
			return m, fmt.Errorf("missed calls: link: %w", err)
		}
		m.Link += n
	}
	return m, nil
}

// Close detaches. It may take as long as attaching did, and the kernel does
// not let itself be interrupted. A second call returns what the first did.
func (a *Attachment) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return a.closeErr
	}
	a.closed = true
	total := a.Attached()
	a.progress(Progress{PhaseDetach, 0, total})
	links, programs := make([]io.Closer, len(a.links)), make([]io.Closer, len(a.programs))
	for i, l := range a.links {
		links[i] = l
	}
	for i, p := range a.programs {
		programs[i] = p
	}
	a.closeErr = closeAll(links, func(done int) { a.progress(Progress{PhaseDetach, total * done / len(links), total}) })
	a.closeErr = errors.Join(a.closeErr, closeAll(programs, func(int) {}))
	a.progress(Progress{PhaseDetach, total, total})
	return a.closeErr
}

// closers is how many links are closed at a time: more make no difference to
// the kernel, which takes a lock.
const closers = 16

// closeAll calls done, from one goroutine at a time, with how many are closed.
func closeAll(all []io.Closer, done func(int)) error {
	var (
		mu     sync.Mutex
		closed int
		errs   []error
		g      errgroup.Group
	)
	g.SetLimit(closers)
	for _, c := range all {
		g.Go(func() error {
			err := c.Close()
			mu.Lock()
			defer mu.Unlock()
			closed++
			done(closed)
			errs = append(errs, err)
			return nil
		})
	}
	_ = g.Wait() // errors are in errs
	return errors.Join(errs...)
}
