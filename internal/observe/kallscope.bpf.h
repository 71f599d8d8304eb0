/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef KALLSCOPE_BPF_H
#define KALLSCOPE_BPF_H

/*
 * The few types and constants of include/uapi/linux/bpf.h used here, written
 * out: the header of the machine that builds differs from build to build, and
 * needs its architecture's asm/types.h, which BPF has none of.
 */
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed int __s32;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u32 u32;
typedef __u64 u64;

enum { BPF_MAP_TYPE_ARRAY = 2 };
enum { BPF_F_MMAPABLE = 1U << 10 };

struct bpf_pidns_info {
	__u32 pid;
	__u32 tgid;
};

#include <stdbool.h>
#include <bpf/bpf_helpers.h>

/*
 * Set by user space once everything is attached. Until then a program leaves
 * at once: the kernel already runs it while it patches the remaining
 * functions, and what the attaching itself calls is not what anybody asked for.
 */
volatile bool ready SEC(".data");

/* Only tasks of this process count; 0 counts all. */
const volatile u32 tgid;
/* The pid namespace that tgid is of; inode 0 is the initial namespace. */
const volatile u64 pidns_dev;
const volatile u64 pidns_ino;

/*
 * The table of targets by address: slot (entry - text_base) >> slot_shift
 * holds index+1. A zero slot, or an address outside, is left to the cookie.
 */
const volatile u64 text_base;
const volatile u32 slot_count;
const volatile u32 slot_shift;

/*
 * One value of slot_count numbers: as elements of their own they would take 8
 * bytes each, which is what array maps round values up to.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32)); /* slot_count * 4 */
} slots SEC(".maps");

static __always_inline bool wanted_task(void)
{
	struct bpf_pidns_info ns;

	if (!tgid)
		return true;
	if (!pidns_ino)
		return bpf_get_current_pid_tgid() >> 32 == tgid;
	return !bpf_get_ns_current_pid_tgid(pidns_dev, pidns_ino, &ns, sizeof(ns)) &&
	       ns.tgid == tgid;
}

/*
 * Returns index+1 of the target that was hit, 0 when it cannot be told.
 *
 * bpf_get_attach_cookie() searches the link's sorted addresses, 16 steps for
 * 40,000 (bpf_kprobe_multi_cookie() in kernel/trace/bpf_trace.c), the table is
 * one load.
 */
static __always_inline u32 target_of(void *ctx)
{
	u64 slot = (bpf_get_func_ip(ctx) - text_base) >> slot_shift;

	if (slot < slot_count) {
		u32 zero = 0;
		u32 *table = bpf_map_lookup_elem(&slots, &zero);

		if (table && table[slot])
			return table[slot];
	}
	return bpf_get_attach_cookie(ctx);
}

#endif
