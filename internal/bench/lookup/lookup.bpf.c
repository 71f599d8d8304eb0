// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//go:build ignore

/* Ways to ask the kernel for addresses by name. */

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed int __s32;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

enum { BPF_MAP_TYPE_ARRAY = 2 };

#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#define NAME_LEN 512 /* KSYM_NAME_LEN since v6.1, 128 before */
#define BATCH 64

struct request {
	__u64 addr;
	__s64 err;
	__u32 size; /* of the name, its NUL included; 0 for none */
	char name[NAME_LEN];
};

struct requests {
	struct request list[BATCH];
};

/* In and out of kallscope_lookup. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct requests);
} batch SEC(".maps");

SEC("syscall")
int kallscope_lookup(void *ctx)
{
	struct requests *requests;
	struct request *r;
	__u32 zero = 0;
	int i;

	requests = bpf_map_lookup_elem(&batch, &zero);
	if (!requests)
		return 1;
	for (i = 0; i < BATCH; i++) {
		r = &requests->list[i];
		if (r->size < 2 || r->size > NAME_LEN)
			continue;
		r->err = bpf_kallsyms_lookup_name(r->name, r->size, 0, &r->addr);
	}
	return 0;
}

/* What is used of include/uapi/linux/bpf.h and kernel/kallsyms.c. */
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct kallsym_iter {
	unsigned long value;
	char name[NAME_LEN];
	int show_value;
} __attribute__((preserve_access_index));

struct bpf_iter__ksym {
	struct bpf_iter_meta *meta;
	struct kallsym_iter *ksym;
} __attribute__((preserve_access_index));

/* A symbol as kallscope_symbols writes it; names are too large for its stack. */
struct symbol {
	__u64 addr;
	char name[NAME_LEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct symbol);
} scratch SEC(".maps");

SEC("iter/ksym")
int kallscope_symbols(struct bpf_iter__ksym *ctx)
{
	struct kallsym_iter *ksym = ctx->ksym;
	struct symbol *s;
	__u32 zero = 0;
	long n;

	if (!ksym)
		return 0;
	s = bpf_map_lookup_elem(&scratch, &zero);
	if (!s)
		return 0;
	/* Here the kernel would show what /proc/kallsyms hides. */
	s->addr = ksym->show_value ? ksym->value : 0;
	n = bpf_probe_read_kernel_str(s->name, sizeof(s->name), ksym->name);
	/* Some have no name; s_show() leaves them out too. */
	if (n < 2 || n > (long)sizeof(s->name))
		return 0;
	bpf_seq_write(ctx->meta->seq, s, sizeof(s->addr) + n);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
