package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/render"
)

func newSnapshot(s stdio) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Write all facts of this kernel to a file, for --kernel",
		Long: `Write all facts of this kernel to a file: symbols, traceable functions, the
types of the kernel and its modules, the kprobe blacklist, and settings. With
--kernel FILE the other commands then answer as they do here, on any machine.

It takes root to have all of them. What cannot be read is said, and recorded
with the reason. The file is made for its owner only, because it has the
addresses that the kernel keeps from others.`,
		Example: `  sudo kallscope snapshot -o - >k.ksnap
  kallscope list 'tcp_*' --kernel k.ksnap
  ssh root@host kallscope snapshot -o - >host.ksnap`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runSnapshot(s, output) },
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "write this `file`; - is standard output (default RELEASE.ksnap)")
	return cmd
}

func runSnapshot(s stdio, output string) error {
	if output == "-" && isTerminal(s.out) {
		return errors.New("snapshot: standard output is a terminal; name a file with -o")
	}
	k, err := kallscope.Live(kallscope.LiveOptions{})
	if err != nil {
		return err
	}
	screen := newProgress(s.err)
	snapshot, err := k.Snapshot(func(what string) { screen.say("reading " + what) })
	screen.clear()
	if err != nil {
		return err
	}
	for _, m := range snapshot.Missing {
		fmt.Fprintf(s.err, "without %s: %s\n", m.Fact, m.Why)
	}
	output = cmp.Or(output, strings.ReplaceAll(k.Identity().Release, "/", "_")+".ksnap")
	to := output
	if output == "-" {
		to = "standard output"
		_, err = snapshot.WriteTo(s.out)
	} else {
		err = snapshot.WriteFile(output)
	}
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	fmt.Fprintf(s.err, "%s: %s\n", to, contents(snapshot.Sections()))
	return nil
}

// contents says what is in a snapshot, with the sizes in the file.
func contents(sections []kallscope.SnapshotSection) string {
	var total int64
	var names []string
	sizes := make(map[string]int64)
	for _, section := range sections {
		name, object, _ := strings.Cut(section.Name, ":")
		if name == "btf" && object != kallscope.Vmlinux {
			name = "btf of modules"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		sizes[name] += section.Stored
		total += section.Stored
	}
	for i, name := range names {
		names[i] = name + " " + render.Bytes(sizes[name])
	}
	return fmt.Sprintf("%s: %s", render.Bytes(total), strings.Join(names, ", "))
}
