package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/attach"
	"github.com/kallscope/kallscope/internal/observe/count"
	"github.com/kallscope/kallscope/internal/render"
)

// defaultTop is how many functions a table shows when --top is not given.
const defaultTop = 25

// defaultMaxProbes is how many functions may have a probe of their own: that
// many take minutes to detach.
const defaultMaxProbes = 1000

// Bounds of -d and -i, in seconds.
const (
	minSeconds = 0.01
	maxSeconds = 1e8 // three years
)

type countFlags struct {
	queryFlags
	seconds  float64
	interval float64
	pid      int
	child    bool
	top      int
	all      bool
	sort     string
	strict   bool
	probes   int

	patterns, command []string
	topGiven          bool
}

func newCount(s stdio) *cobra.Command {
	var f countFlags
	cmd := &cobra.Command{
		Use:   "count PATTERN... [-- COMMAND [ARG...]]",
		Short: "Count the calls of functions",
		Long: `Count the calls of every function that matches, until ^C, for -d seconds, or
while a command runs. Everything is attached before the first call counts.

A command's standard output goes to standard error with --json, which has
standard output for itself. How the command ended is said, not passed on.`,
		Example: `  kallscope count 'tcp_*' -d 5
  kallscope count 'ext4:*' -i 1 --top 10
  kallscope count 'syscall:*' --command-only -- ls -l`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.patterns = args
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				f.patterns, f.command = args[:n], args[n:]
				if len(f.command) == 0 {
					return errors.New("count: no command behind --")
				}
			}
			if cmd.Flags().Changed("pid") && f.pid <= 0 {
				return fmt.Errorf("count: -p %d is no process", f.pid)
			}
			f.topGiven = cmd.Flags().Changed("top")
			return f.run(s)
		},
	}
	f.registerPatterns(cmd)
	f.registerTargets(cmd)
	flags := cmd.Flags()
	_ = flags.MarkHidden("kernel") // known, to be refused in a sentence
	flags.VarP((*secondsValue)(&f.seconds), "duration", "d", "stop after this many `seconds`")
	flags.VarP((*secondsValue)(&f.interval), "interval", "i", "print the counts of every `seconds`")
	flags.IntVarP(&f.pid, "pid", "p", 0, "count only the threads of this `process`")
	flags.BoolVar(&f.child, "command-only", false, "count only the threads of the command, not what it starts")
	flags.IntVar(&f.top, "top", defaultTop, "show the first `N` functions; 0 for all that were called")
	flags.BoolVar(&f.all, "all", false, "show also functions that were not called")
	flags.StringVar(&f.sort, "sort", "calls", "order by `key`: calls, name or address")
	flags.IntVar(&f.probes, "max-probes", defaultMaxProbes, "at most this `number` of functions that take a probe each")
	flags.BoolVar(&f.strict, "strict", false, "attach all targets or none")
	return cmd
}

func (f *countFlags) check() error {
	switch {
	case f.kernel != "":
		return errors.New("count: --kernel is for list and resolve; calls are counted in the running kernel")
	case f.top < 0:
		return errors.New("count: --top must not be negative")
	case f.seconds != 0 && !(minSeconds <= f.seconds && f.seconds <= maxSeconds):
		return fmt.Errorf("count: -d %v: use %v to %v seconds", f.seconds, minSeconds, maxSeconds)
	case f.interval != 0 && !(minSeconds <= f.interval && f.interval <= maxSeconds):
		return fmt.Errorf("count: -i %v: use %v to %v seconds", f.interval, minSeconds, maxSeconds)
	case len(f.command) > 0 && f.seconds > 0:
		return errors.New("count: -d and a command both say when to stop; leave one out")
	case f.child && len(f.command) == 0:
		return errors.New("count: --command-only needs a command behind --")
	case f.child && f.pid > 0:
		return errors.New("count: -p and --command-only both choose a process; leave one out")
	case !slices.Contains([]string{"calls", "name", "address"}, f.sort):
		return fmt.Errorf("count: --sort %q: use calls, name or address", f.sort)
	}
	if f.pid > 0 {
		return checkProcess(f.pid)
	}
	return nil
}

// checkProcess refuses what is no process: counting nothing would be the
// answer.
func checkProcess(pid int) error {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return fmt.Errorf("count: -p %d: no such process", pid)
	}
	_, rest, _ := strings.Cut(string(status), "\nTgid:")
	tgid, _, _ := strings.Cut(rest, "\n")
	if leader, err := strconv.Atoi(strings.TrimSpace(tgid)); err == nil && leader != pid {
		return fmt.Errorf("count: -p %d is a thread of process %d; use -p %d", pid, leader, leader)
	}
	return nil
}

// countRun is one run of the command.
type countRun struct {
	*countFlags
	stdio
	kernel  *kallscope.Kernel
	plan    *kallscope.Plan
	counter *count.Counter
	att     *attach.Attachment
	child   *childCommand
	screen  *progress

	planned, attached, started time.Time
	last                       []uint64
}

func (f *countFlags) run(s stdio) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	begin := time.Now()
	mechanism, err := f.supported()
	if err != nil {
		return err
	}
	k, err := kallscope.Live(kallscope.LiveOptions{})
	if err != nil {
		return err
	}
	r := &countRun{countFlags: f, stdio: s, kernel: k, screen: newProgress(s.err)}
	if r.plan, err = f.plan(k, f.patterns, s.in); err != nil {
		return err
	}
	r.planned = time.Now()
	f.tell(s.err, k, r.plan)
	tellSkipped(s.err, r.plan)
	if len(r.plan.Targets) == 0 {
		return errNoMatch
	}
	if f.verbose {
		fmt.Fprintf(s.err, "planned in %s, sites from %s\n", render.Duration(r.planned.Sub(begin)), cmp.Or(r.plan.Facts.SitesFrom, "nowhere"))
	}
	if err := r.checkProbes(); err != nil {
		return err
	}
	if err := r.prepare(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.finish()) }()
	// From here on an interrupt ends the run in order, a second one at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	if err := r.attach(ctx, mechanism); err != nil {
		return err
	}
	return r.observe(ctx)
}

// checkProbes refuses what nobody waits for without being told.
func (r *countRun) checkProbes() error {
	n := 0
	for _, t := range r.plan.Targets {
		if t.Mechanism.PerFunction() {
			n++
		}
	}
	if n <= r.probes {
		return nil
	}
	cost := attach.Estimate(r.plan)
	return fmt.Errorf("count: %s functions by %s take a probe each: about %s to attach and %s to detach; narrow the patterns, or allow it with --max-probes %d",
		render.Number(n), r.plan.Targets[0].Mechanism, render.Duration(cost.Attach), render.Duration(cost.Detach), n)
}

// supported returns the mechanism to use, or why there is none and what works
// instead.
func (f *countFlags) supported() (kallscope.Mechanism, error) {
	m, err := kallscope.ParseMechanism(f.mechanism)
	if err != nil {
		return m, err
	}
	auto := m == kallscope.MechanismAuto
	if auto {
		m = kallscope.KprobeMulti
	}
	err = attach.Supported(m)
	if errors.Is(err, kallscope.ErrNotSupported) && auto {
		return m, fmt.Errorf("count: %w; --mechanism fentry and --mechanism kprobe work on many kernels", err)
	}
	if err != nil {
		return m, fmt.Errorf("count: %w", err)
	}
	return m, nil
}

// prepare starts the command, stopped, and makes the maps.
func (r *countRun) prepare() error {
	o := count.Options{PID: r.pid}
	if len(r.command) > 0 {
		streams := r.stdio
		if r.json {
			streams.out = streams.err
		}
		child, err := startStopped(r.command, streams)
		if err != nil {
			return fmt.Errorf("count: %w", err)
		}
		r.child = child
		if r.countFlags.child {
			o.PID = child.pid()
		}
	}
	var err error
	if r.counter, err = count.New(r.plan, o); err != nil && r.child != nil {
		r.child.kill()
	}
	return err
}

func (r *countRun) attach(ctx context.Context, m kallscope.Mechanism) (err error) {
	begin := time.Now()
	r.att, err = attach.Attach(ctx, r.counter.Programs(), r.plan, attach.Options{
		Kernel:   r.kernel,
		Strict:   r.strict,
		Progress: r.screen.show,
		Start:    r.counter.Start,
	})
	r.screen.clear()
	if err != nil {
		return err
	}
	r.attached = time.Now()
	for i, refused := range r.att.Refused() {
		if i == 10 {
			fmt.Fprintf(r.err, "and %d more refused\n", len(r.att.Refused())-i)
			break
		}
		fmt.Fprintf(r.err, "%s at %s refused: %v\n", refused.Target.Func, render.Address(refused.Target.Addr), refused.Err)
	}
	if r.verbose {
		facts := r.plan.Facts
		fmt.Fprintf(r.err, "%d symbols, %d attachable, %d matched, %d targets, %d attached (%s, %s), %d refused, %d skipped\n",
			facts.Symbols, facts.Sites, r.plan.Matched(), len(r.plan.Targets), r.att.Attached(), m,
			render.Duration(r.attached.Sub(begin)), len(r.att.Refused()), r.plan.Skipped.Len())
		return nil
	}
	fmt.Fprintf(r.err, "%s of %s attached by %s in %s; %s refused, %s skipped\n",
		render.Number(r.att.Attached()), render.Plural(len(r.plan.Targets), "target"), m,
		render.Duration(r.attached.Sub(begin)), render.Number(len(r.att.Refused())), render.Number(r.plan.Skipped.Len()))
	return nil
}

// observe counts until there is a reason to stop, and prints.
func (r *countRun) observe(ctx context.Context) error {
	r.started = time.Now()
	r.last = make([]uint64, len(r.plan.Targets))
	var deadline, tick <-chan time.Time
	if r.seconds > 0 {
		timer := time.NewTimer(seconds(r.seconds))
		defer timer.Stop()
		deadline = timer.C
	}
	if r.interval > 0 {
		ticker := time.NewTicker(seconds(r.interval))
		defer ticker.Stop()
		tick = ticker.C
	}
	var ended <-chan error
	if r.child != nil {
		ended = r.child.resume()
	} else if r.seconds == 0 {
		fmt.Fprintln(r.err, "counting until ^C")
	}
	for {
		select {
		case <-tick:
			if err := r.printInterval(); err != nil {
				return err
			}
		case <-deadline:
			return r.printTotal()
		case err := <-ended:
			r.child.tell(err)
			return r.printTotal()
		case <-ctx.Done():
			err := r.printTotal()
			if r.seconds > 0 || r.child != nil {
				return errors.Join(err, errInterrupted)
			}
			return err
		}
	}
}

// secondsValue is a flag: a number of seconds, or a duration with its unit.
type secondsValue float64

func (v *secondsValue) Set(text string) error {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		*v = secondsValue(n)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("want seconds, such as 5 or 0.5, or a time, such as 500ms")
	}
	*v = secondsValue(d.Seconds())
	return nil
}

func (v *secondsValue) String() string { return strconv.FormatFloat(float64(*v), 'g', -1, 64) }

func (*secondsValue) Type() string { return "seconds" }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// printInterval prints what was called since the last time.
func (r *countRun) printInterval() error {
	now := r.counter.Counts(nil)
	delta := make([]uint64, len(now))
	for i := range now {
		delta[i] = now[i] - r.last[i]
	}
	r.last = now
	at := time.Now()
	if r.json {
		return errors.Join(r.print(delta, at), r.printIntervalJSON(delta, at))
	}
	return r.print(delta, at)
}

// printTotal ends the counting and prints it.
func (r *countRun) printTotal() error {
	if err := r.counter.Stop(); err != nil {
		return fmt.Errorf("count: stop: %w", err)
	}
	elapsed := time.Since(r.started)
	missed, err := r.att.Missed()
	if err != nil {
		return err
	}
	total := r.counter.Counts(nil)
	result := r.summarize(total, missed, elapsed)
	if r.interval > 0 {
		err = r.printInterval()
	} else {
		err = r.print(total, time.Time{})
	}
	if err == nil && r.json {
		err = r.printJSON(result)
	}
	result.speak(r.err)
	return err
}

// finish detaches and says how long that took.
func (r *countRun) finish() error {
	if r.child != nil {
		r.child.stop()
	}
	var err error
	if r.att != nil {
		begin := time.Now()
		r.screen.show(attach.Progress{Phase: attach.PhaseDetach, Total: r.att.Attached()})
		err = r.att.Close()
		r.screen.clear()
		fmt.Fprintf(r.err, "detached in %s\n", render.Duration(time.Since(begin)))
	}
	return errors.Join(err, r.counter.Close())
}
