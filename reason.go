package kallscope

import (
	"fmt"
	"strings"
)

// A Reason says why a function is not a target of a mechanism. The zero
// Reason means that nothing stands in the way. Code, text, remedy and
// reference of each are in one table, see [Reason.Info].
type Reason uint8

// The reasons, in the order in which a plan looks for them.
const (
	ReasonNone Reason = iota

	ReasonDataSymbol
	ReasonExcludedAlias
	ReasonPseudoModule
	ReasonPadding
	ReasonCFIPreamble
	ReasonCFIJumpTable
	ReasonCold
	ReasonNoSymbol
	ReasonSuffixed
	ReasonAddressHidden
	ReasonModuleNotLive
	ReasonInit
	ReasonNoinstr
	ReasonFragment
	ReasonNoSite
	ReasonSiteUnknown
	ReasonBlacklisted
	ReasonDispatch
	ReasonDuplicate
	ReasonAmbiguousName
	ReasonOffset
	ReasonNoBTF
	ReasonVariadic
	ReasonStructReturn
	ReasonLargeStruct
	ReasonValueType
	ReasonTooManyArgs
	ReasonDenied
	ReasonNoreturn
	ReasonHangs

	// The reasons below come from the kernel, when it refuses a target that
	// the plan had.

	ReasonRefused
	ReasonNotTried

	numReasons
)

// ReasonInfo is what kallscope knows about a [Reason].
type ReasonInfo struct {
	// Code is the stable name: in JSON, in --skipped=CODE and in docs.
	Code string
	// Text completes the sentence "FUNCTION is not a target: ...".
	Text string
	// Remedy is what to do instead; empty when there is nothing to do.
	Remedy string
	// Reference is where the kernel decides it.
	Reference string
}

var reasons = [numReasons]ReasonInfo{
	ReasonNone: {Code: "none", Text: "nothing stands in the way"},
	ReasonDataSymbol: {
		Code: "data-symbol", Text: "a data symbol, not a function",
		Remedy:    "name a function: kallsyms type t, T, w or W",
		Reference: "scripts/kallsyms.c: the type letter is that of nm(1)",
	},
	ReasonExcludedAlias: {
		Code: "excluded-alias", Text: "another name of the same address is excluded, and one address cannot be attached to by one name only",
		Remedy:    "narrow the exclusion; kallscope resolve shows all names of an address",
		Reference: "arch/x86/include/asm/syscall_wrapper.h: __x64_sys_X and __do_sys_X are one function",
	},
	ReasonPseudoModule: {
		Code: "pseudo-module", Text: "code made at run time (BPF programs, ftrace trampolines), not a function of the kernel or of a module",
		Remedy:    "to watch a BPF program, attach to the program itself by its id",
		Reference: "kernel/kallsyms.c: get_ksymbol_bpf(), get_ksymbol_ftrace_mod()",
	},
	ReasonPadding: {
		Code: "padding", Text: "padding before a function (__pfx_), never called",
		Remedy:    "use the name without __pfx_",
		Reference: "tools/objtool/elf.c: elf_create_prefix_symbol()",
	},
	ReasonCFIPreamble: {
		Code: "cfi-preamble", Text: "the type hash before a function (__cfi_), never called",
		Remedy:    "use the name without __cfi_",
		Reference: "kernel/kprobes.c: arch_is_cfi_preamble_symbol users",
	},
	ReasonCFIJumpTable: {
		Code: "cfi-jump-table", Text: "a slot of the CFI jump table (.cfi_jt), not the function",
		Remedy:    "use the name without .cfi_jt",
		Reference: "include/linux/cfi.h",
	},
	ReasonCold: {
		Code: "cold", Text: "the unlikely part of a function (.cold), entered by a jump and not by a call",
		Remedy:    "use the name without .cold",
		Reference: "include/asm-generic/vmlinux.lds.h: .text.unlikely",
	},
	ReasonNoSymbol: {
		Code: "no-symbol", Text: "in BTF only: the kernel has no symbol of this name (inlined everywhere, or discarded after boot)",
		Remedy:    "watch a function that calls it",
		Reference: "kernel/bpf/verifier.c: bpf_check_attach_target(), kallsyms_lookup_name()",
	},
	ReasonSuffixed: {
		Code: "suffixed", Text: "in BTF under this name, but the compiler made it NAME.isra.N, NAME.constprop.N or the like; arguments may differ",
		Remedy:    "use the full name, or --variants",
		Reference: "pahole btf_encoder.c: functions are stored under the name before the first dot",
	},
	ReasonAddressHidden: {
		Code: "address-hidden", Text: "its address is hidden and its name is not enough to choose it",
		Remedy:    "read kallsyms with CAP_SYSLOG and kernel.kptr_restrict below 2",
		Reference: "kernel/kallsyms.c: kallsyms_show_value()",
	},
	ReasonModuleNotLive: {
		Code: "module-not-live", Text: "its module is being loaded or unloaded",
		Remedy:    "try again once the module is Live in /proc/modules",
		Reference: "kernel/trace/bpf_trace.c: get_modules_for_addrs()",
	},
	ReasonInit: {
		Code: "init", Text: "initialisation code, freed after boot",
		Reference: "init/main.c: free_initmem()",
	},
	ReasonNoinstr: {
		Code: "noinstr", Text: "must not be instrumented (noinstr or entry text)",
		Remedy:    "watch a function that it calls",
		Reference: "include/linux/compiler_types.h: noinstr",
	},
	ReasonFragment: {
		Code: "fragment", Text: "a split-off part of a function (.part) without an ftrace site of its own",
		Remedy:    "use the name without .part",
		Reference: "gcc -fpartial-inlining",
	},
	ReasonNoSite: {
		Code: "no-site", Text: "no ftrace site: notrace, assembly, or built without instrumentation",
		Remedy:    "watch a function that calls it, or that it calls",
		Reference: "kernel/trace/ftrace.c: ftrace_location()",
	},
	ReasonSiteUnknown: {
		Code: "site-unknown", Text: "the kernel's list of traceable functions, which has one name an address, does not decide whether this one is among them",
		Remedy:    "name it exactly, or run where addresses are visible",
		Reference: "kernel/trace/ftrace.c: t_show()",
	},
	ReasonBlacklisted: {
		Code: "blacklisted", Text: "in code that kprobes must stay out of",
		Remedy:    "use kprobe.multi or fentry, which are not bound by that list, or watch a function that it calls",
		Reference: "kernel/kprobes.c: within_kprobe_blacklist(); EINVAL; the list is kprobes/blacklist in debugfs",
	},
	ReasonDispatch: {
		Code: "dispatch", Text: "called by the probe mechanism itself on every hit: it would make every other probe dearer and drop its calls",
		Remedy:    "name it exactly, or use --cautious",
		Reference: "kernel/trace/bpf_trace.c: kprobe_multi_link_prog_run() takes the RCU read lock",
	},
	ReasonDuplicate: {
		Code: "duplicate", Text: "another function of this name was chosen, or none (--duplicates)",
		Remedy:    "--duplicates all, or choose by address",
		Reference: "kernel/kallsyms.c: kallsyms_on_each_match_symbol()",
	},
	ReasonAmbiguousName: {
		Code: "ambiguous-name", Text: "several symbols have this name, and by name the kernel would take another one",
		Remedy:    "use a mechanism by address, such as kprobe.multi, where addresses are visible",
		Reference: "kernel/kallsyms.c: kallsyms_lookup_name() takes the first symbol, kernel/trace/ftrace.c: ftrace_lookup_symbols() the first traceable one",
	},
	ReasonOffset: {
		Code: "offset", Text: "an offset inside a function, which this mechanism cannot attach to",
		Remedy:    "leave the offset out, or use kprobe",
		Reference: "kernel/trace/fprobe.c: entry and return only",
	},
	ReasonNoBTF: {
		Code: "no-btf", Text: "BTF has no function of this name, and this mechanism attaches by BTF id",
		Remedy:    "use kprobe.multi or kprobe",
		Reference: "pahole btf_encoder.c: assembly, and functions whose arguments were optimised away or whose address is ambiguous, are left out",
	},
	ReasonVariadic: {
		Code: "variadic", Text: "takes a variable number of arguments, which a trampoline cannot pass on",
		Remedy:    "use kprobe.multi or kprobe",
		Reference: "kernel/bpf/btf.c: btf_distill_func_proto(); EINVAL",
	},
	ReasonStructReturn: {
		Code: "struct-return", Text: "returns a struct or union by value",
		Remedy:    "use kprobe.multi or kprobe",
		Reference: "kernel/bpf/btf.c: btf_distill_func_proto(); EINVAL",
	},
	ReasonLargeStruct: {
		Code: "large-struct", Text: "takes a struct or union by value that a trampoline cannot pass on",
		Remedy:    "use kprobe.multi or kprobe",
		Reference: "kernel/bpf/btf.c: btf_distill_func_proto(), 16 bytes, none before v6.0, no unions before v6.18; EINVAL",
	},
	ReasonValueType: {
		Code: "value-type", Text: "takes or returns a value that a trampoline cannot pass on",
		Remedy:    "use kprobe.multi or kprobe",
		Reference: "kernel/bpf/btf.c: __get_type_size(): integers, pointers, enums and structs; EINVAL",
	},
	ReasonTooManyArgs: {
		Code: "too-many-args", Text: "takes more arguments than a trampoline can pass on",
		Remedy:    "use kprobe.multi or kprobe",
		Reference: "arch/x86/net/bpf_jit_comp.c: 12 registers, 6 before v6.6 (473e3150e30a); ENOTSUPP",
	},
	ReasonDenied: {
		Code: "denied", Text: "the verifier refuses trampolines on it",
		Remedy:    "use kprobe.multi or kprobe",
		Reference: "kernel/bpf/verifier.c: btf_id_deny; EINVAL",
	},
	ReasonNoreturn: {
		Code: "noreturn", Text: "never returns, so the verifier refuses what runs on return",
		Remedy:    "use fentry, or a probe on entry",
		Reference: "kernel/bpf/verifier.c: noreturn_deny, since v6.15; EINVAL",
	},
	ReasonHangs: {
		Code: "hangs", Text: "a trampoline on it stops the machine",
		Remedy:    "use kprobe.multi",
		Reference: "tried in guests; docs/mechanisms.md",
	},
	ReasonRefused: {
		Code: "refused", Text: "the kernel refused it",
		Remedy:    "the error number says how; see dmesg",
		Reference: "kernel/trace/bpf_trace.c: bpf_kprobe_multi_link_attach()",
	},
	ReasonNotTried: {
		Code: "not-tried", Text: "not tried: too many other targets were refused before it",
		Remedy:    "ask for fewer functions",
		Reference: "",
	},
}

// Info returns the entry of the reason table, or the zero ReasonInfo for a
// number that is none.
func (r Reason) Info() ReasonInfo {
	if r >= numReasons {
		return ReasonInfo{}
	}
	return reasons[r]
}

// String returns the stable code, such as "no-site".
func (r Reason) String() string {
	if r >= numReasons {
		return fmt.Sprintf("reason-%d", uint8(r))
	}
	return reasons[r].Code
}

// Reasons returns all reasons, in the order in which a plan looks for them.
func Reasons() []Reason {
	all := make([]Reason, 0, numReasons-1)
	for r := ReasonNone + 1; r < numReasons; r++ {
		all = append(all, r)
	}
	return all
}

// ParseReason returns the reason of a code. It fails with [ErrNotFound].
func ParseReason(code string) (Reason, error) {
	for r, info := range reasons {
		if info.Code == code {
			return Reason(r), nil
		}
	}
	var codes []string
	for _, r := range Reasons() {
		codes = append(codes, r.String())
	}
	return ReasonNone, fmt.Errorf("reason %q: %w; use one of %s", code, ErrNotFound, strings.Join(codes, ", "))
}

// MarshalText returns the code.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a code. It fails with [ErrNotFound].
func (r *Reason) UnmarshalText(text []byte) error {
	parsed, err := ParseReason(string(text))
	*r = parsed
	return err
}
