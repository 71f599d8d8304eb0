// Vmrun runs a program in a virtual machine with one of Debian's kernels, as
// root, and passes on its output and exit status.
//
//	vmrun -kernel 6.12 -- ./kallscope count 'tcp_*'
//	go test -exec 'vmrun -kernel 6.12' ./attach
//
// The program must be statically linked (CGO_ENABLED=0). It sees its own file,
// the folder testdata of the working directory under the same path, what -copy
// names, and nothing else of the host. Environment variables whose names begin
// with KALLSCOPE_ or GO, and NO_COLOR and TERM, go along.
//
// Under go test the files that its flags name (-coverprofile, -cpuprofile,
// -trace and the like) come back to the host. "go test -count=1" is wise: the
// go command does not see that a kernel has changed.
//
// Interrupt, quit and terminate signals go to the program in the guest. The
// exit status is the program's; 125 means that vmrun itself or the guest did
// not do its part, and standard error says why, with the end of the kernel log.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/kallscope/kallscope/internal/vm"
	"github.com/kallscope/kallscope/internal/vm/kernels"
)

// exitFailed is the status for everything that is not the program's own end,
// as with docker run and timeout(1).
const exitFailed = 125

func main() {
	vm.GuestMain()
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

type streams struct {
	in       io.Reader
	out, err io.Writer
}

func run(args []string, s streams) int {
	opts, err := parse(args, s.err)
	if errors.Is(err, errHelp) {
		return 0
	}
	if err == nil {
		err = execute(opts, s)
	}
	var exit *vm.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	}
	fmt.Fprintf(s.err, "vmrun: %v\n", err)
	return exitFailed
}

func execute(opts options, s streams) error {
	cmd, err := command(opts)
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.in, s.out, s.err
	if opts.verbose {
		cmd.Console = s.err
	}
	// From here on signals are the guest's; the time limit ends all else.
	sigs := make(chan os.Signal, 8)
	signal.Notify(sigs, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(sigs)
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	go forward(cmd, sigs, done)
	return cmd.Wait()
}

func forward(cmd *vm.Cmd, sigs <-chan os.Signal, done <-chan struct{}) {
	for {
		select {
		case sig := <-sigs:
			_ = cmd.Signal(sig)
		case <-done:
			return
		}
	}
}

// command makes the Cmd that the options describe.
func command(o options) (*vm.Cmd, error) {
	kernel, err := kernels.Find(o.kernel)
	if err != nil {
		return nil, err
	}
	wd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	cmd := vm.CommandContext(context.Background(), kernel, o.program[0], o.program[1:]...)
	cmd.Dir = wd
	cmd.Env = environment(o, os.Environ())
	cmd.Modules = o.modules
	cmd.Memory, cmd.CPUs = o.memory, o.cpus
	cmd.Append = o.params
	cmd.Sysctl = o.sysctl
	cmd.NoMount = o.noMount
	cmd.UID = o.uid
	cmd.Icount = o.icount
	cmd.Timeout = o.timeout
	cmd.Files, cmd.Fetch = o.copy, o.fetch
	cmd.FetchOptional = map[string]string{}
	addTestFiles(cmd)
	return cmd, nil
}
