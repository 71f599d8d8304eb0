package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newBench(s stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what finding functions costs on this machine",
		Long: `Measure on this machine what finding functions costs, beside the least
that it could cost, taken in the same run.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown benchmark %q; see '%s --help'", args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchResolve(s))
	return cmd
}

// maxCount bounds the numbers of a list: what is made up of them must fit into
// memory.
const maxCount = 10_000_000

// parseCounts reads numbers such as 20000, 20k and 2M; "all" stands for what
// there is.
func parseCounts(flag string, list []string, all int) ([]int, error) {
	var counts []int
	for _, text := range list {
		n, err := parseCount(text, all)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		counts = append(counts, n)
	}
	return counts, nil
}

func parseCount(text string, all int) (int, error) {
	if text == "all" {
		return all, nil
	}
	digits, unit := text, 1
	if short, ok := strings.CutSuffix(text, "k"); ok {
		digits, unit = short, 1000
	} else if short, ok := strings.CutSuffix(text, "M"); ok {
		digits, unit = short, 1_000_000
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > maxCount/unit {
		return 0, fmt.Errorf("%q is no number from 1 to 10M; write 20000, 20k or all", text)
	}
	return n * unit, nil
}

// threeDigits returns d as "0.213 ms", "41.2 ms" or "3.4 s".
func threeDigits(d time.Duration) string {
	switch {
	case d < 999500*time.Microsecond:
		return fmt.Sprintf("%.3g ms", d.Seconds()*1000)
	case d < 999*time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
