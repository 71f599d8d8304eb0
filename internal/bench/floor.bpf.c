// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//go:build ignore

/* The floors that counting is measured against. */
#include "../observe/kallscope.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u64);
} counter SEC(".maps");

/* Nothing but the test of the flag. */
SEC("kprobe.multi")
int empty(void *ctx)
{
	return ready ? 0 : 1;
}

/* One counter a CPU for all targets: what counting cannot do without. */
SEC("kprobe.multi")
int fixed(void *ctx)
{
	u32 key = bpf_get_smp_processor_id();
	u64 *calls;

	if (!ready)
		return 0;
	calls = bpf_map_lookup_elem(&counter, &key);
	if (calls)
		*calls += 1;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
