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
 * Whether a program may be interrupted by itself. kprobe.multi and perf events
 * run one program at a time on a CPU (bpf_prog_active, kprobe_multi_link_prog_run()
 * and trace_call_bpf() in kernel/trace/bpf_trace.c). fentry and its like are
 * kept from recursion too, but only since v5.12 (9ed9e9ba2337).
 */
const volatile bool reentrant;

/* bpf_session_is_return() of kernels before v7.0 takes no argument, and does
 * not mind one. */
extern bool bpf_session_is_return(void *ctx) __weak __ksym;

/*
 * Nobody else writes this CPU's counters. Counter 0 of each CPU is for hits
 * whose target could not be told.
 */
static __always_inline void count(void *ctx)
{
	u32 key;
	u64 *calls;

	if (!ready || !wanted_task())
		return;
	key = bpf_get_smp_processor_id() * stride + target_of(ctx);
	calls = bpf_map_lookup_elem(&counts, &key);
	if (!calls)
		return;
	if (reentrant)
		__sync_fetch_and_add(calls, 1);
	else
		*calls += 1;
}

SEC("kprobe.multi")
int kallscope_entry(void *ctx)
{
	count(ctx);
	return 0;
}

/* A session runs at entry and return, and counts a call once. */
SEC("kprobe.session")
int kallscope_session(void *ctx)
{
	if (!bpf_session_is_return(ctx))
		count(ctx);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
