package attach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

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

	mu       sync.Mutex // guards what follows, and links and programs of Missed
	closed   bool
	closeErr error
}

func attachPlan(ctx context.Context, programs Programs, plan *kallscope.Plan, o Options) (_ *Attachment, err error) {
	if err := checkKernel(plan.Kernel); err != nil {
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
	for _, m := range kallscope.Mechanisms() {
		g := group{mechanism: m, targets: plan.Targets}
		for i, t := range plan.Targets {
			if t.Mechanism == m {
				g.indexes = append(g.indexes, i)
			}
		}
		if len(g.indexes) == 0 {
			continue
		}
		if err := a.attachGroup(ctx, programs, &g, o); err != nil {
			return nil, fmt.Errorf("attach: %s: %w", m, err)
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

// checkKernel compares a plan's kernel with the running one.
func checkKernel(want kallscope.Identity) error {
	running, err := kallscope.Live(kallscope.LiveOptions{})
	if err != nil {
		return err
	}
	if got := running.Identity(); got != want {
		return fmt.Errorf("attach: plan of %s %s %s: %w; this is %s %s %s: make the plan anew here",
			want.Release, want.Arch, want.BuildID, kallscope.ErrOtherKernel, got.Release, got.Arch, got.BuildID)
	}
	return nil
}

// checkTargets refuses what no plan of this package has: a target without a
// mechanism, and an address twice, of which the kernel would run one.
func checkTargets(targets []kallscope.Target) error {
	seen := make(map[uint64]int, len(targets))
	for i, t := range targets {
		if !slices.Contains(kallscope.Mechanisms(), t.Mechanism) {
			return fmt.Errorf("attach: target %d, %s: mechanism %s is none to attach by", i, t.Func, t.Mechanism)
		}
		if first, twice := seen[t.Addr]; twice && t.Addr != 0 {
			return fmt.Errorf("attach: targets %d and %d have one address, %#x", first, i, t.Addr)
		}
		seen[t.Addr] = i
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
	a.progress(Progress{PhaseDetach, 0, a.Attached()})
	a.closeErr = closeAll(a.links)
	for _, p := range a.programs {
		a.closeErr = errors.Join(a.closeErr, p.Close())
	}
	a.progress(Progress{PhaseDetach, a.Attached(), a.Attached()})
	return a.closeErr
}

func closeAll(links []link.Link) error {
	errs := make([]error, len(links))
	var wg sync.WaitGroup
	for i, l := range links {
		wg.Go(func() { errs[i] = l.Close() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
