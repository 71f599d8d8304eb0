package kallscope

// dispatch are the functions that the kernel calls on every hit of a
// kprobe.multi link: attached to, each costs every other probe a further,
// dropped hit. kprobe_multi_link_prog_run() in kernel/trace/bpf_trace.c takes
// the RCU read lock; from 7.0 on, is_endbr() is no longer inlined into
// ftrace_get_entry_ip(). TestFindDispatch in internal/bench finds them, on 6.12
// and 7.3 no others. With everything attached one getppid costs 8.0 µs with
// and 2.2 µs without them on 6.12, counted in instructions.
var dispatch = map[string]bool{
	"__rcu_read_lock":   true,
	"__rcu_read_unlock": true,
	"is_endbr":          true,
}

// hangs are the functions whose trampoline stops the machine, alone and at
// once, tried in guests: what enters and leaves a BPF program calls them, and
// the verifier's deny list (btf_id_deny in kernel/bpf/verifier.c) does not have
// them on every kernel. kprobe.multi and kprobes do no harm there.
var hangs = map[string]string{
	"__rcu_read_lock":         "a trampoline takes the RCU read lock itself: the guest stops on 6.1 (6.12 refuses it)",
	"__rcu_read_unlock":       "a trampoline gives back the RCU read lock itself, as with __rcu_read_lock",
	"rcu_read_unlock_special": "giving back the RCU read lock calls it, in every trampoline: the guest stops on 7.3.4",
}

// Hangs returns why a mechanism must not be used on a function: attaching it
// stops the machine. It is empty for all others.
func Hangs(m Mechanism, f Func) string {
	if !m.ByBTF() || f.Module != Vmlinux {
		return ""
	}
	return hangs[f.Name]
}
