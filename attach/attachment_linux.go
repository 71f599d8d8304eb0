package attach

import (
	"context"
	"errors"
	"fmt"
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

	close    sync.Once
	closeErr error
}

func attachPlan(ctx context.Context, programs Programs, plan *kallscope.Plan, o Options) (_ *Attachment, err error) {
	if err := checkKernel(plan.Kernel); err != nil {
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

// Attached returns the number of targets that are attached.
func (a *Attachment) Attached() int { return a.targets - len(a.refused) }

// Refused returns the targets that the kernel did not take, in the order of
// the plan.
func (a *Attachment) Refused() []Refused { return a.refused }

// Links returns the links, for instance to pin them. They belong to the
// attachment: Close closes them.
func (a *Attachment) Links() []link.Link { return a.links }

// Missed returns the calls that were not seen since Start. It costs a few
// system calls.
func (a *Attachment) Missed() (Missed, error) {
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
	a.close.Do(func() {
		a.progress(Progress{PhaseDetach, 0, a.Attached()})
		a.closeErr = closeAll(a.links)
		for _, p := range a.programs {
			a.closeErr = errors.Join(a.closeErr, p.Close())
		}
		a.progress(Progress{PhaseDetach, a.Attached(), a.Attached()})
	})
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
