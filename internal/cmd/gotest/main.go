// Gotest runs go test and says in few lines what happened: a line per package,
// the skipped tests by reason, the whole output of what failed, and at the end
// how many passed, failed and were skipped.
//
//	gotest run [FLAG|PACKAGE...]             go test with these flags
//	gotest guest -kernel NAME [PACKAGE...]   the kernel tests, in guests
//	gotest fuzz -each TIME [PACKAGE...]      every fuzz target for some time
//
// Kernel tests are the tests in files *_linux_test.go of packages that have
// some; each package gets a guest of its own, with the commands kallscope and
// workload in its /bin, the kernel's own file as /boot/vmlinuz and a module
// loaded. Tests run with -short, unless with -long. A guest run in which no test passes has failed.
//
// Exit status: 0 all passed, 1 something failed, 2 wrong usage or an error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: gotest run [go test FLAG or PACKAGE...]
       gotest guest [-kernel NAME] [-modules LIST] [-long] [-p N] [-timeout TIME] [PACKAGE...]
       gotest fuzz [-each TIME] [-budget TIME] [-p N] [PACKAGE...]
`

var (
	errUsage = errors.New("usage")
	// errFailed says that a test failed, which has been told.
	errFailed = errors.New("tests failed")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case err == nil:
		return
	case errors.Is(err, errFailed):
		fmt.Fprintf(os.Stderr, "gotest: %v\n", err)
		os.Exit(1)
	case errors.Is(err, errUsage):
		fmt.Fprint(os.Stderr, usage)
	default:
		fmt.Fprintf(os.Stderr, "gotest: %v\n", err)
	}
	os.Exit(2)
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet("gotest "+args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	switch args[0] {
	case "run":
		return runTests(ctx, args[1:], stdout)
	case "guest":
		return runGuest(ctx, flags, args[1:], stdout)
	case "fuzz":
		return runFuzz(ctx, flags, args[1:], stdout)
	}
	return errUsage
}

// parse parses flags and returns the packages, all if none is named.
func parse(flags *flag.FlagSet, args []string) ([]string, error) {
	if err := flags.Parse(args); err != nil {
		return nil, fmt.Errorf("%s: %w; gotest without arguments shows the usage", flags.Name(), err)
	}
	if flags.NArg() == 0 {
		return []string{"./..."}, nil
	}
	return flags.Args(), nil
}
