package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/pattern"
	"github.com/kallscope/kallscope/internal/render"
)

// queryFlags are the flags of every command that takes patterns.
type queryFlags struct {
	query       kallscope.Query
	planOptions kallscope.PlanOptions // what no flag of all commands says
	files       []string
	duplicates  string
	mechanism   string
	cautious    bool
	json        bool
	verbose     bool
	kernel      string
}

// registerPatterns adds the flags that say which functions are meant.
func (q *queryFlags) registerPatterns(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVarP(&q.query.Exclude, "exclude", "x", nil, "leave out what this `pattern` matches")
	f.StringArrayVarP(&q.query.Modules, "module", "m", nil, "only functions of modules that this `glob` matches")
	f.BoolVar(&q.query.Variants, "variants", false, "names and globs also stand for what the compiler made of a function, such as name.isra.0")
	f.StringArrayVar(&q.query.Args, "arg", nil, "only functions with an argument of this C `type`")
	f.StringArrayVar(&q.query.Rets, "ret", nil, "only functions that return this C `type`")
	f.StringVar(&q.query.NArgs, "nargs", "", "only functions with this `number` of arguments: 3, 2-4, 6-")
	f.StringArrayVarP(&q.files, "file", "f", nil, "read patterns from this `file` too; - is standard input")
	f.BoolVar(&q.json, "json", false, "one JSON object a line")
	f.StringVar(&q.kernel, "kernel", "", "use the kernel whose facts are in this `file`, made by kallscope snapshot")
	f.BoolVarP(&q.verbose, "verbose", "v", false, "say what each step did")
}

// registerTargets adds the flags that say which of them become targets.
func (q *queryFlags) registerTargets(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.duplicates, "duplicates", "all", "`rule` for functions of one name: all, skip, first or error")
	f.BoolVar(&q.cautious, "cautious", false, "include the functions that probes themselves call")
	q.registerMechanism(cmd)
}

func (q *queryFlags) registerMechanism(cmd *cobra.Command) {
	cmd.Flags().StringVar(&q.mechanism, "mechanism", "auto", "attach by this `mechanism`: "+mechanismList())
}

func mechanismList() string {
	var names []string
	for _, m := range kallscope.Mechanisms() {
		names = append(names, m.String())
	}
	return strings.Join(names, ", ")
}

// open returns the kernel that --kernel names, else the running one.
func (q *queryFlags) open() (*kallscope.Kernel, error) {
	if q.kernel != "" {
		return kallscope.Open(q.kernel)
	}
	k, err := kallscope.Live(kallscope.LiveOptions{})
	if err != nil {
		return nil, fmt.Errorf("%w; use --kernel FILE", err)
	}
	return k, nil
}

// read returns the query of the flags and the patterns on the command line.
func (q *queryFlags) read(args []string, stdin io.Reader) (kallscope.Query, error) {
	q.query.Patterns = args
	for _, file := range q.files {
		if err := q.readFile(file, stdin); err != nil {
			return q.query, err
		}
	}
	if len(q.query.Patterns)+len(q.query.Exclude)+len(q.query.Modules)+len(q.query.Args)+len(q.query.Rets)+len(q.query.NArgs) == 0 {
		return q.query, errors.New("no pattern given; '*' stands for all functions")
	}
	return q.query, nil
}

// plan answers the query.
func (q *queryFlags) plan(k *kallscope.Kernel, args []string, stdin io.Reader) (*kallscope.Plan, error) {
	query, err := q.read(args, stdin)
	if err != nil {
		return nil, err
	}
	o, err := q.options()
	if err != nil {
		return nil, err
	}
	return k.Plan(query, o)
}

func (q *queryFlags) options() (o kallscope.PlanOptions, err error) {
	o = q.planOptions
	o.Cautious = q.cautious
	if o.Duplicates, err = kallscope.ParseDuplicates(q.duplicates); err != nil {
		return o, err
	}
	o.Mechanism, err = kallscope.ParseMechanism(q.mechanism)
	return o, err
}

func (q *queryFlags) readFile(file string, stdin io.Reader) error {
	in, name := stdin, "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("patterns: %w", err)
		}
		defer f.Close()
		in, name = f, file
	}
	patterns, err := pattern.ParseFile(in, name)
	if err != nil {
		return err
	}
	if len(patterns) == 0 {
		return fmt.Errorf("patterns: %s has none", name)
	}
	for _, p := range patterns {
		q.query.Patterns = append(q.query.Patterns, p.String())
	}
	return nil
}

// tell says on w what a plan could not know, and which patterns found nothing;
// with -v also what was read in a slower way.
func (q *queryFlags) tell(w io.Writer, k *kallscope.Kernel, p *kallscope.Plan) {
	q.tellFacts(w, k, p.Facts)
	tellUnmatched(w, p.Unmatched)
}

func (q *queryFlags) tellFacts(w io.Writer, k *kallscope.Kernel, f kallscope.Facts) {
	if q.verbose {
		id := k.Identity()
		fmt.Fprintf(w, "kernel %s, build id %s, %s\n", id.Release, cmp.Or(id.BuildID, "unknown"), cmp.Or(q.kernel, "running"))
		for _, f := range k.Fallbacks() {
			fmt.Fprintln(w, f)
		}
	}
	for _, unknown := range []struct{ what, why string }{
		{"addresses are hidden (%s): functions are known by name only\n", f.Hidden},
		{"which functions can be traced is not known: %s\n", f.SitesUnknown},
		{"functions that are in BTF only are missing: %s\n", f.BTFUnknown},
		{"which code kprobes must stay out of is not known: %s\n", f.BlacklistUnknown},
		{"which functions the verifier refuses is not known: %s\n", f.DenyListUnknown},
	} {
		if unknown.why != "" {
			fmt.Fprintf(w, unknown.what, unknown.why)
		}
	}
}

func tellUnmatched(w io.Writer, list []kallscope.Unmatched) {
	for i, u := range list {
		if i == 10 && len(list) > 11 {
			fmt.Fprintf(w, "and %d more patterns match nothing\n", len(list)-i)
			break
		}
		fmt.Fprintf(w, "%s: no function matches", u.Pattern)
		if u.Why != "" {
			fmt.Fprintf(w, ": %s", u.Why)
		}
		if len(u.Near) > 0 {
			fmt.Fprintf(w, "; near: %s", strings.Join(u.Near, ", "))
		}
		if _, err := os.Lstat(u.Pattern); err == nil {
			fmt.Fprint(w, "; a file here has this name: did the shell expand a pattern that is not quoted?")
		}
		fmt.Fprintln(w)
	}
}

// tellSkipped says why candidates are no targets: each by name when there are
// few, else by reason.
func tellSkipped(w io.Writer, p *kallscope.Plan) {
	if p.Skipped.Len() == 0 {
		return
	}
	if p.Skipped.Len() > 3 {
		fmt.Fprintf(w, "%s skipped: %s\n", render.Number(p.Skipped.Len()), render.Reasons(p.Skipped.By()))
		return
	}
	for s := range p.Skipped.All() {
		info := s.Reason.Info()
		fmt.Fprintf(w, "%s skipped: %s: %s", s.Func, s.Reason, info.Text)
		if info.Remedy != "" {
			fmt.Fprintf(w, "; %s", info.Remedy)
		}
		fmt.Fprintln(w)
	}
}

// summary is a plan in one line.
func summary(p *kallscope.Plan) string {
	return fmt.Sprintf("%d symbols, %d attachable, %d matched, %d targets, %d skipped",
		p.Facts.Symbols, p.Facts.Sites, p.Matched(), len(p.Targets), p.Skipped.Len())
}
