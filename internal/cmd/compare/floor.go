//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/attach"
	"github.com/kallscope/kallscope/internal/observe/count"
)

// floorCommand, behind guestCommand, measures the floor in a process of its
// own.
const floorCommand = "floor"

// Names of what the floor finds, shown like tools.
const (
	systemCall = "bare bpf(2)"
	attachCall = "attach.Attach"
)

func runFloor(r *round) error {
	cmd := exec.Command(guestRunner, guestCommand, floorCommand, r.pattern)
	cmd.Stderr = os.Stderr
	// The order of the two changes with the rounds.
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%t", bareFirst, r.number%2 == 0))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	samples, err := readJSON(out, func(sample) {})
	if err := cmd.Wait(); err != nil {
		return err
	}
	for _, s := range samples {
		if err := r.add(s); err != nil {
			return err
		}
	}
	return err
}

// bareFirst is an environment variable.
const bareFirst = "COMPARE_BARE_FIRST"

// floorMain measures the system call alone and attach.Attach, with the same
// program, addresses and cookies, and prints two samples.
func floorMain(pattern string, stdout io.Writer) error {
	k, err := kallscope.Live(kallscope.LiveOptions{})
	if err != nil {
		return err
	}
	p, err := k.Plan(kallscope.Query{Patterns: []string{pattern}}, kallscope.PlanOptions{})
	if err != nil {
		return err
	}
	counter, err := count.New(p, count.Options{})
	if err != nil {
		return err
	}
	defer counter.Close()
	measures := []func(attach.Programs, *kallscope.Plan) (sample, error){measureBare, measureAttach}
	if os.Getenv(bareFirst) != "true" {
		measures[0], measures[1] = measures[1], measures[0]
	}
	out := json.NewEncoder(stdout)
	for _, m := range measures {
		s, err := m(counter.Programs(), p)
		if err != nil {
			return err
		}
		if err := out.Encode(s); err != nil {
			return err
		}
	}
	return nil
}

func measureAttach(programs attach.Programs, p *kallscope.Plan) (sample, error) {
	begin := time.Now()
	att, err := attach.Attach(context.Background(), programs, p, attach.Options{})
	if err != nil {
		return sample{}, err
	}
	s := sample{Tool: attachCall, Attach: time.Since(begin).Seconds(), Functions: att.Attached()}
	begin = time.Now()
	err = att.Close()
	s.Stop = time.Since(begin).Seconds()
	return s, err
}

func measureBare(programs attach.Programs, p *kallscope.Plan) (sample, error) {
	prog, err := load(programs)
	if err != nil {
		return sample{}, err
	}
	defer prog.Close()
	addrs := make([]uintptr, len(p.Targets))
	cookies := make([]uint64, len(p.Targets))
	for i, t := range p.Targets {
		addrs[i], cookies[i] = uintptr(t.Addr), uint64(i)+1
	}
	begin := time.Now()
	fd, err := createLink(prog.FD(), addrs, cookies)
	if err != nil {
		return sample{}, fmt.Errorf("bpf(2): %w", err)
	}
	s := sample{Tool: systemCall, Attach: time.Since(begin).Seconds(), Functions: len(addrs)}
	begin = time.Now()
	err = unix.Close(fd)
	s.Stop = time.Since(begin).Seconds()
	return s, err
}

func load(programs attach.Programs) (*ebpf.Program, error) {
	spec := programs.Entry.Copy()
	spec.Type, spec.AttachType = ebpf.Kprobe, ebpf.AttachTraceKprobeMulti
	for i := range spec.Instructions {
		ins := &spec.Instructions[i]
		if m := programs.Maps[ins.Reference()]; m != nil && ins.IsLoadFromMap() {
			if err := ins.AssociateMap(m); err != nil {
				return nil, err
			}
		}
	}
	return ebpf.NewProgram(spec)
}
