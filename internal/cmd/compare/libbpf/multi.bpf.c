// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} hits SEC(".maps");

SEC("kprobe.multi")
int count(void *ctx)
{
	__u32 key = 0;
	__u64 *n = bpf_map_lookup_elem(&hits, &key);

	if (n)
		*n += 1;
	return 0;
}
