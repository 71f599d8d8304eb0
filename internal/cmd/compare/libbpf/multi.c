// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * multi OBJECT PATTERN attaches the program of multi.bpf.c to every function
 * that matches, the way libbpf does it, until SIGINT.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>

static int fail(const char *what)
{
	fprintf(stderr, "multi: %s: %s\n", what, strerror(errno));
	return 2;
}

int main(int argc, char **argv)
{
	struct bpf_program *prog;
	struct bpf_object *obj;
	struct bpf_link *link;
	sigset_t stop;
	int sig;

	if (argc != 3) {
		fprintf(stderr, "usage: multi OBJECT PATTERN\n");
		return 2;
	}
	/* The signal waits until sigwait() below asks for it. */
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigprocmask(SIG_BLOCK, &stop, NULL);

	obj = bpf_object__open_file(argv[1], NULL);
	if (!obj)
		return fail("open");
	if (bpf_object__load(obj))
		return fail("load");
	prog = bpf_object__find_program_by_name(obj, "count");
	if (!prog)
		return fail("find program");
	link = bpf_program__attach_kprobe_multi_opts(prog, argv[2], NULL);
	if (!link)
		return fail("attach");
	fprintf(stderr, "attached by libbpf %s\n", libbpf_version_string());
	sigwait(&stop, &sig);
	bpf_link__destroy(link);
	bpf_object__close(obj);
	return 0;
}
