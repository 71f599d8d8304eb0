// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//go:build ignore

/* Counts calls per target and CPU. */
#include "../kallscope.bpf.h"

/* Counters of one CPU, rounded up to whole pages. */
const volatile u32 stride;

/* [possible CPU][target]; a per-CPU array could not be mapped. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* possible CPUs * stride */
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

/*
 * No atomic: kprobe.multi runs one program at a time on a CPU (bpf_prog_active,
 * kprobe_multi_link_prog_run() in kernel/trace/bpf_trace.c), and nobody else
 * writes this CPU's counters.
 *
 * Counter 0 of each CPU is for hits whose target could not be told.
 */
SEC("kprobe.multi")
int kallscope_entry(void *ctx)
{
	u32 key;
	u64 *calls;

	if (!ready || !wanted_task())
		return 0;
	key = bpf_get_smp_processor_id() * stride + target_of(ctx);
	calls = bpf_map_lookup_elem(&counts, &key);
	if (calls)
		*calls += 1;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
