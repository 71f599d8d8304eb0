// Payload is what the tests of package vm run in guests. Its first argument
// says what to do.
package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

var actions = map[string]func(args []string) int{
	"hello":     hello,
	"mix":       mix,
	"panic":     panicKernel,
	"interrupt": interrupt,
	"look":      look,
	"killed":    killed,
}

func main() {
	do, ok := actions[strings.Join(os.Args[1:min(2, len(os.Args))], "")]
	if !ok {
		fmt.Fprintf(os.Stderr, "payload: arguments %q\n", os.Args)
		os.Exit(99)
	}
	os.Exit(do(os.Args[2:]))
}

func hello([]string) int {
	version, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	fmt.Printf("%s", version)
	return 0
}

// mix uses every stream at once: it writes n random bytes to standard output
// and as many to standard error, from different seeds, and what it reads from
// standard input to a file.
func mix(args []string) int {
	n, _ := strconv.Atoi(args[0])
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.CopyN(os.Stderr, rand.NewChaCha8([32]byte{2}), int64(n))
	}()
	in, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = os.Mkdir(filepath.Dir(args[1]), 0o755)
	}
	if err == nil {
		err = os.WriteFile(args[1], in, 0o640)
	}
	io.CopyN(os.Stdout, rand.NewChaCha8([32]byte{1}), int64(n))
	<-done
	if err != nil {
		return 1
	}
	return 7
}

func panicKernel([]string) int {
	os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0)
	return 1
}

func interrupt([]string) int {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	fmt.Println("ready")
	fmt.Println(<-c)
	return 130
}

// look prints what init has set up.
func look(args []string) int {
	wd, _ := os.Getwd()
	fmt.Println("uid", os.Getuid(), "gid", os.Getgid())
	fmt.Println("wd", wd)
	fmt.Println("args", args)
	fmt.Println("env", os.Environ())
	for _, file := range []string{"/proc/modules", "/proc/mounts", "/proc/sys/kernel/kptr_restrict", "/sys/class/net/lo/flags", "/data/a.txt"} {
		text, err := os.ReadFile(file)
		fmt.Printf("%s: %v\n%s", file, err, text)
	}
	return 0
}

func killed([]string) int {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	return 1
}
