// Kernels fetches Debian kernels for the project's guests, and lists them.
//
//	kernels fetch [-update] [NAME...]   put kernels into the cache, all if none is named
//	kernels list                        what there is: name, release, folder
//	kernels path [-image|-modules] NAME where it is
//
// The cache is $KALLSCOPE_KERNELS, else kallscope/kernels in the user's cache
// folder. Nothing is installed, and root is not needed. Exit status: 0 done,
// 1 a kernel asked for is not there, 2 usage or error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"text/tabwriter"

	"github.com/kallscope/kallscope/internal/vm/kernels"
)

const usage = `usage: kernels fetch [-update] [NAME...]
       kernels list
       kernels path [-image|-modules] NAME
`

var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status(err, os.Stderr))
}

func status(err error, stderr io.Writer) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprint(stderr, usage)
		return 2
	}
	fmt.Fprintf(stderr, "kernels: %v\n", err)
	if errors.Is(err, kernels.ErrNotFetched) {
		return 1
	}
	return 2
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	fs := flag.NewFlagSet(args[0], flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() { fmt.Fprint(stderr, usage) }
	switch args[0] {
	case "fetch":
		return runFetch(ctx, fs, args[1:], stderr)
	case "list":
		return runList(fs, args[1:], stdout)
	case "path":
		return runPath(fs, args[1:], stdout)
	case "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return nil
	}
	return errUsage
}

func runFetch(ctx context.Context, fs *flag.FlagSet, args []string, stderr io.Writer) error {
	update := fs.Bool("update", false, "look for newer kernels")
	if err := fs.Parse(args); err != nil {
		return err
	}
	names := fs.Args()
	if len(names) == 0 {
		names = kernels.Names()
	}
	var errs []error
	for _, name := range names {
		res, err := kernels.Fetch(ctx, name, kernels.Options{Update: *update})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		state := "already there"
		if res.New {
			state = "fetched"
		}
		fmt.Fprintf(stderr, "%s: %s %s\n", name, res.Release, state)
	}
	return errors.Join(errs...)
}

func runList(fs *flag.FlagSet, args []string, stdout io.Writer) error {
	if err := fs.Parse(args); err != nil {
		return err
	}
	list, err := kernels.List()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, m := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\n", m.Name, m.Release, m.Dir())
	}
	return w.Flush()
}

func runPath(fs *flag.FlagSet, args []string, stdout io.Writer) error {
	image := fs.Bool("image", false, "print the path of vmlinuz")
	modules := fs.Bool("modules", false, "print the path of the modules folder")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() != 1 {
		return errUsage
	}
	k, err := kernels.Find(fs.Arg(0))
	if err != nil {
		return err
	}
	path := k.Dir
	switch {
	case *image:
		path = k.Image
	case *modules:
		path = k.ModulesDir
	}
	_, err = fmt.Fprintln(stdout, path)
	return err
}
