package attach_test

import (
	"context"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/attach"
)

// Attach a program of one's own, loaded from an object file, to all functions
// of TCP.
func Example() {
	kernel, err := kallscope.Live(kallscope.LiveOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := kernel.Plan(kallscope.Query{Patterns: []string{"tcp_*", "!tcp_v6_*"}}, kallscope.PlanOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	spec, err := ebpf.LoadCollectionSpec("mine.bpf.o")
	if err != nil {
		fmt.Println(err)
		return
	}
	// The maps now, the program once the mechanism is known.
	program := spec.Programs["on_entry"]
	spec.Programs = nil
	maps, err := ebpf.NewCollection(spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer maps.Close()
	att, err := attach.Attach(context.Background(), attach.Programs{Entry: program, Maps: maps.Maps}, plan, attach.Options{
		Start: func() error { return maps.Variables["ready"].Set(true) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer att.Close()
	fmt.Println(att.Attached(), "attached")
	for _, r := range att.Refused() {
		fmt.Println(r.Target, r.Reason, r.Err)
	}
}
