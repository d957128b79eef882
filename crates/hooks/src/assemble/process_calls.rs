//! Calls that change who is running, which are clone's family and `execve`, and questions that must be asked before a
//! call is made.

use super::asking_site::AskingSite;
use super::call_kinds::{self, changes_identity};
use super::emitter::{Emitted, Emitter, asm, at, gs, gs_at, gs32};
use super::who::identify;
use super::{elide_ids, faults_served, no_program, own_memory, rseq_areas, stack_bounds};
use crate::layout::{IMAGE, NUMBERS, Question, image, slot, state};
use crate::numbers::{
    ARCH_PRCTL, CLOCK_GETTIME, CLONE, CLONE3, EXECVE, EXECVEAT, EXIT, EXIT_GROUP, FORK, MLOCKALL, MMAP, MPROTECT,
    PKEY_MPROTECT, PRCTL, RSEQ, SECCOMP, VFORK,
};
use iced_x86::code_asm::*;

const CLONE_VM: i32 = 0x100;
const CLONE_VFORK: i32 = 0x4000;
const ARCH_SET_GS: i32 = 0x1001;
const MCL_CURRENT: i32 = 1;
const MCL_FUTURE: i32 = 2;
const PR_SET_SECCOMP: i32 = 22;
const PR_SET_TSC: i32 = 26;
const PR_TSC_SIGSEGV: i32 = 2;
const PR_SET_SYSCALL_USER_DISPATCH: i32 = 59;
const SECCOMP_MODE_STRICT: i32 = 1;
const SECCOMP_MODE_FILTER: i32 = 2;
const SECCOMP_SET_MODE_FILTER: i32 = 1;
/// Last of the operations of `seccomp` that only ask, besides SECCOMP_GET_ACTION_AVAIL.
const SECCOMP_GET_NOTIF_SIZES: i32 = 3;
/// Id of a process's processor-time clock (linux/time.h).
const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;

/// Continuations of a call of clone's family.
#[derive(Clone, Copy)]
pub(super) struct Ways {
    /// Continuation in the maker.
    pub(super) parent: CodeLabel,
    /// Continuation in the new thread or process, which has a slot of its own.
    pub(super) child: CodeLabel,
    /// True if the call is noted as pending in the maker's slot.
    pub(super) noted: bool,
}

/// Makes a call of clone's family. The new thread's slot is chosen and prepared before the call and handed over in r9,
/// which none of these calls uses: afterwards the maker may already use its own slot for something else.
pub(super) fn clone(e: &mut Emitter, number: u32, ways: Ways) -> Emitted {
    let threads = e.label();
    if number == CLONE {
        asm!(e; test(edi, CLONE_VM); jne(threads););
    }
    if matches!(number, CLONE | FORK) {
        make(e, number, ways, true)?;
    }
    if number != FORK {
        e.here(threads)?;
        make(e, number, ways, false)?;
    }
    Ok(())
}

/// Emits the call with a slot for the new thread. `copies` is true if the call makes a process with a copy of the memory
/// (fork): the child then continues the call that was under way, and keeps its rseq area.
fn make(e: &mut Emitter, number: u32, ways: Ways, copies: bool) -> Emitted {
    let (none, taken, homeless, maker) = (e.label(), e.label(), e.label(), e.label());
    let (quiet, made) = (e.label(), e.label());
    take_slot(e, none)?;
    let taken = e.here(taken)?;
    asm!(e; mov(at(rcx, slot::MAKER_R9), r9); mov(r9, rcx););
    if copies {
        inherit(e, ways.noted)?;
    } else {
        fill(e, 0, slot::INHERITED)?;
    }
    shares_memory(e, number, copies)?;
    asm!(e; mov(eax, number); syscall(); test(rax, rax); jne(maker););
    asm!(e; wrgsbase(r9); mov(r9, gs(slot::MAKER_R9)););
    asm!(e; mov(rcx, IMAGE + image::QUIET); cmp(dword_ptr(rcx), 0); jne(quiet););
    identify(e)?;
    rseq_areas::begin(e, rseq_areas::Begins::of(number, copies))?;
    elide_ids::begins(e, number, true)?;
    e.here(made)?;
    asm!(e; xor(eax, eax); jmp(ways.child););
    e.cold(move |e| {
        let failed = e.label();
        e.here(quiet)?;
        elide_ids::begins(e, number, false)?;
        asm!(e; jmp(made););
        e.here(maker)?;
        // Once MADE_AS is written, or if the thread was never made, the slot may be given to another.
        asm!(e; mov(rcx, r9); mov(r9, at(rcx, slot::MAKER_R9)););
        asm!(e; js(failed); mov(at(rcx, slot::MADE_AS), rax); jmp(ways.parent););
        e.here(failed)?;
        asm!(e; mov(dword_ptr(rcx + slot::LEAVING as i32), 1); jmp(ways.parent););
        e.here(none)?;
        let asked = e.label();
        asm!(e; mov(r11, IMAGE););
        e.ask(Question::Slots, asked)?;
        e.here(asked)?;
        take_slot(e, homeless)?;
        asm!(e; jmp(taken););
        e.here(homeless)?;
        asm!(e; mov(r11, IMAGE + image::HOMELESS););
        e.a.lock().inc(qword_ptr(r11))?;
        shares_memory(e, number, copies)?;
        asm!(e; mov(eax, number); syscall(); test(rax, rax); jne(ways.parent););
        let last = image::SLOTS + (image::SLOT_COUNT - 1) * slot::SIZE;
        asm!(e; mov(rcx, IMAGE + last); wrgsbase(rcx););
        elide_ids::begins(e, number, false)?;
        asm!(e; jmp(ways.child););
        Ok(())
    });
    Ok(())
}

/// Notes that other threads may run in the same memory from here on, unless the maker waits until the new process has
/// left it. Lost: r11, flags.
fn shares_memory(e: &mut Emitter, number: u32, copies: bool) -> Emitted {
    let apart = e.label();
    if copies || number == VFORK {
        return Ok(());
    }
    if number == CLONE {
        asm!(e; test(edi, CLONE_VFORK); jne(apart););
    }
    asm!(e; mov(r11, IMAGE + image::THREADS); mov(dword_ptr(r11), 1););
    e.here(apart)?;
    Ok(())
}

/// Takes a slot that no thread has into rcx, and writes its identity and maker into it. Lost: rax, r11.
fn take_slot(e: &mut Emitter, homeless: CodeLabel) -> Emitted {
    asm!(e; mov(r11, IMAGE); mov(ecx, 1););
    e.a.lock().xadd(at(r11, image::NEXT_SLOT), rcx)?;
    asm!(e; and(ecx, (image::TICKETS_LEN - 1) as i32); xor(eax, eax););
    asm!(e; xchg(dword_ptr(r11 + rcx * 4 + image::TICKETS as i32), eax); sub(eax, 1); jb(homeless););
    asm!(e; mov(rcx, rax); shl(rcx, slot::SHIFT); mov(r11, IMAGE + image::SLOTS); add(rcx, r11););
    // A loop: this code stands ten times at each site where any call may be made.
    let again = e.label();
    asm!(e; mov(r11d, (slot::CLEARED - 8) as u32););
    let again = e.here(again)?;
    asm!(e; mov(qword_ptr(rcx + r11), 0); sub(r11, 8); cmp(r11, slot::PARENT as i32); jge(again););
    for offset in [slot::CPU, slot::CPU + 8, slot::USER_CHANGES, slot::AREA_BUSY].into_iter().chain(slot::MEMORY_WORDS)
    {
        asm!(e; mov(at(rcx, offset), 0););
    }
    asm!(e; mov(r11, IMAGE + image::ID); mov(r11, qword_ptr(r11)); shl(r11, 16u32); lea(r11, qword_ptr(r11 + rax + 1)););
    asm!(e; mov(eax, gs32(slot::USERS_UNNAMED)); mov(dword_ptr(rcx + slot::USERS_UNNAMED as i32), eax););
    asm!(e; mov(at(rcx, slot::TAG), r11); mov(at(rcx, slot::SELF), rcx););
    asm!(e; mov(rax, gs(slot::SELF)); mov(at(rcx, slot::PARENT), rax););
    Ok(())
}

/// Zeroes the words between two offsets in the slot at r9. Lost: r11, flags.
fn fill(e: &mut Emitter, from: u64, to: u64) -> Emitted {
    let again = e.label();
    asm!(e; mov(r11d, (to - 8) as u32););
    e.here(again)?;
    asm!(e; mov(qword_ptr(r9 + r11), 0); sub(r11, 8); cmp(r11, from as i32); jge(again););
    Ok(())
}

/// Copies the words with which a forked process continues into the slot at r9: calls and a wait that a signal handler
/// has interrupted, if the handler forks. Lost: rax, r11, flags.
fn inherit(e: &mut Emitter, noted: bool) -> Emitted {
    let (again, idle) = (e.label(), e.label());
    asm!(e; mov(r11d, (slot::INHERITED - 8) as u32););
    e.here(again)?;
    asm!(e; mov(rax, gs_at(r11, 0)); mov(qword_ptr(r9 + r11), rax); sub(r11, 8); jns(again););
    asm!(e; mov(at(r9, slot::WANT), 0); mov(at(r9, slot::MASK), 0););
    // The copy does not wait for an answer: it continues with the one it has.
    asm!(e; cmp(dword_ptr(r9 + slot::STATE as i32), 0); je(idle););
    asm!(e; mov(dword_ptr(r9 + slot::STATE as i32), state::ANSWERED););
    e.here(idle)?;
    if noted {
        let (none, done) = (e.label(), e.label());
        // In the child, the call that forks does not return as one that was made here.
        asm!(e; mov(rax, at(r9, slot::DEPTH)); sub(rax, slot::STACK_ENTRY as i32); jb(none););
        asm!(e; mov(at(r9, slot::DEPTH), rax););
        for (i, field) in [slot::RSP, slot::START, slot::NODE].into_iter().enumerate() {
            asm!(e; mov(r11, qword_ptr(r9 + rax + (slot::STACK as i32 + 8 * i as i32))); mov(at(r9, field), r11););
        }
        asm!(e; jmp(done););
        e.here(none)?;
        asm!(e; mov(at(r9, slot::RSP), 0););
        e.here(done)?;
    }
    Ok(())
}

/// Makes a call that takes away the slot or the clock, dispatches our calls to the program, or locks our memory.
/// Nothing is done behind it: the thread continues as a new one does.
fn last_watched(e: &mut Emitter, root: u64, plain: CodeLabel) -> Emitted {
    let asked = e.label();
    asm!(e; mov(r11, root););
    e.ask(Question::Last, asked)?;
    e.here(asked)?;
    asm!(e; syscall(); jmp(plain););
    Ok(())
}

/// Asks before a `seccomp`, or a `prctl` that confines. A thread that thereby gives its clock up (the kernel's
/// disable_TSC: strict mode, PR_TSC_SIGSEGV) would die in our code at its next call, and one that has its system calls
/// dispatched to itself would receive ours: such a process is let go first.
fn confine(e: &mut Emitter, asking: AskingSite, (go, plain): (CodeLabel, CodeLabel)) -> Emitted {
    let root = asking.root;
    let (prctl, tsc, last, keeps) = (e.label(), e.label(), e.label(), e.label());
    let (filter, strict, dispatch) = (e.label(), e.label(), e.label());
    elide_ids::seal(e)?;
    asm!(e; cmp(eax, PRCTL as i32); je(prctl););
    // libseccomp finds out in these ways what the kernel can do: by a strict mode with flags or an argument, filters
    // at address 0, and operations that only ask. A program that only does that is not confined.
    asm!(e; cmp(edi, SECCOMP_SET_MODE_FILTER); je(filter); jb(strict););
    asm!(e; cmp(edi, SECCOMP_GET_NOTIF_SIZES); ja(keeps); jmp(go););
    e.here(strict)?;
    asm!(e; mov(r11d, esi); or(r11, rdx); je(last); jmp(go););
    e.here(prctl)?;
    asm!(e; cmp(edi, PR_SET_SYSCALL_USER_DISPATCH); je(dispatch););
    asm!(e; cmp(edi, PR_SET_TSC); je(tsc); cmp(esi, SECCOMP_MODE_STRICT); je(last););
    asm!(e; cmp(esi, SECCOMP_MODE_FILTER); jne(keeps););
    e.here(filter)?;
    // The kernel would read the filter at address 0 (EFAULT): no program has memory there unless vm.mmap_min_addr was
    // lowered.
    asm!(e; test(rdx, rdx); je(go); jmp(keeps););
    e.here(dispatch)?;
    asm!(e; test(rsi, rsi); jne(last); jmp(go););
    e.here(tsc)?;
    asm!(e; cmp(esi, PR_TSC_SIGSEGV); jne(go););
    e.here(last)?;
    last_watched(e, root, plain)?;
    e.here(keeps)?;
    asking.ask(e, Question::Confine)?;
    asm!(e; jmp(go););
    Ok(())
}

/// Asks the launcher the question that a call of this number requires before it is made. `plain` is the place at
/// which a call made here continues without further work.
pub(super) fn ask_before(e: &mut Emitter, number: u32, asking: AskingSite, plain: CodeLabel) -> Emitted {
    let root = asking.root;
    let (question, go) = (e.label(), e.label());
    match number {
        ARCH_PRCTL => {
            asm!(e; cmp(edi, ARCH_SET_GS); je(question););
            e.cold(move |e| {
                e.here(question)?;
                last_watched(e, root, plain)
            });
        }
        MLOCKALL => {
            asm!(e; test(edi, MCL_CURRENT | MCL_FUTURE); jne(question););
            e.cold(move |e| {
                e.here(question)?;
                last_watched(e, root, plain)
            });
        }
        SECCOMP => {
            asm!(e; jmp(question););
            e.cold(move |e| {
                e.here(question)?;
                confine(e, asking, (go, plain))
            });
        }
        PRCTL => {
            asm!(e; cmp(edi, PR_SET_SECCOMP); je(question); cmp(edi, PR_SET_TSC); je(question););
            asm!(e; cmp(edi, PR_SET_SYSCALL_USER_DISPATCH); je(question););
            e.cold(move |e| {
                e.here(question)?;
                confine(e, asking, (go, plain))
            });
        }
        EXECVE | EXECVEAT => asking.ask(e, Question::Exec)?,
        n if own_memory::may_touch(n) && asking.adjacent => own_memory::ask_before(e, n, asking)?,
        n if changes_identity(n) => asking.ask(e, Question::Identity)?,
        _ => {}
    }
    e.here(go)?;
    Ok(())
}

/// Labels of the code for calls that need more than counting, by the call or the family of calls.
struct Parts {
    family: CodeLabel,
    exit: CodeLabel,
    exec: CodeLabel,
    clone3: CodeLabel,
    confined: CodeLabel,
    prctl: CodeLabel,
    map: CodeLabel,
    arch: CodeLabel,
    lock: CodeLabel,
    protect: CodeLabel,
    rseq: CodeLabel,
    /// Other calls that may touch our memory, by number.
    others: [(u32, CodeLabel); own_memory::OTHERS.len()],
}

impl Parts {
    fn new(e: &mut Emitter) -> Self {
        Self {
            family: e.label(),
            exit: e.label(),
            exec: e.label(),
            clone3: e.label(),
            confined: e.label(),
            prctl: e.label(),
            map: e.label(),
            arch: e.label(),
            lock: e.label(),
            protect: e.label(),
            rseq: e.label(),
            others: own_memory::OTHERS.map(|number| (number, e.label())),
        }
    }

    /// Goes to the part of the number in eax, to `go` if counting is enough, or behind this code. Lost: rcx, flags.
    fn choose(&self, e: &mut Emitter, go: CodeLabel) -> Emitted {
        let Self { family, exit, exec, clone3, confined, prctl, map, arch, lock, protect, rseq, others } = *self;
        asm!(e; lea(ecx, dword_ptr(rax - CLONE as i32)); cmp(ecx, (EXIT - CLONE) as i32); jbe(family););
        asm!(e; cmp(eax, EXIT_GROUP as i32); je(exit); cmp(eax, CLONE3 as i32); je(clone3););
        asm!(e; cmp(eax, EXECVEAT as i32); je(exec););
        asm!(e; cmp(eax, SECCOMP as i32); je(confined); cmp(eax, PRCTL as i32); je(prctl););
        asm!(e; cmp(eax, MMAP as i32); je(map); cmp(eax, ARCH_PRCTL as i32); je(arch););
        asm!(e; cmp(eax, MPROTECT as i32); je(protect); cmp(eax, PKEY_MPROTECT as i32); je(protect););
        asm!(e; cmp(eax, MLOCKALL as i32); je(lock); cmp(eax, RSEQ as i32); je(rseq););
        for (number, label) in others {
            asm!(e; cmp(eax, number as i32); je(label););
        }
        let seen_to = |n: &u32| stack_bounds::takes_away(*n) || faults_served::opens(*n);
        for number in (0..NUMBERS as u32).filter(seen_to).filter(|n| !call_kinds::brings_code(*n)) {
            asm!(e; cmp(eax, number as i32); je(go););
        }
        Ok(())
    }

    /// Writes the parts of calls that change memory, or what the process may do.
    fn of_memory_and_rights(&self, e: &mut Emitter, asking: AskingSite, go: CodeLabel, ways: Ways) -> Emitted {
        let root = asking.root;
        e.here(self.arch)?;
        asm!(e; cmp(edi, ARCH_SET_GS); jne(go););
        last_watched(e, root, ways.child)?;
        for (number, label) in self.others {
            e.here(label)?;
            own_memory::ask_before(e, number, asking)?;
            asm!(e; jmp(go););
        }
        e.here(self.lock)?;
        asm!(e; test(edi, MCL_CURRENT | MCL_FUTURE); je(go););
        last_watched(e, root, ways.child)?;
        e.here(self.rseq)?;
        rseq_areas::give_way(e)?;
        asm!(e; syscall(););
        super::on_return::rseq_learnt(e)?;
        asm!(e; jmp(ways.parent););
        e.here(self.prctl)?;
        let confined = self.confined;
        asm!(e; cmp(edi, PR_SET_SECCOMP); je(confined); cmp(edi, PR_SET_SYSCALL_USER_DISPATCH); je(confined););
        asm!(e; cmp(edi, PR_SET_TSC); jne(go););
        e.here(confined)?;
        confine(e, asking, (go, ways.child))?;
        e.here(self.map)?;
        own_memory::ask_before(e, MMAP, asking)?;
        asm!(e; syscall(););
        super::on_return::mapped(e, root)?;
        asm!(e; jmp(ways.parent););
        e.here(self.protect)?;
        own_memory::ask_before(e, MPROTECT, asking)?;
        asm!(e; syscall(););
        super::on_return::made_executable(e, root)?;
        asm!(e; jmp(ways.parent););
        Ok(())
    }

    /// Writes the parts of calls that make or end threads and processes, or execute a program.
    fn of_processes(&self, e: &mut Emitter, asking: AskingSite, go: CodeLabel, ways: Ways) -> Emitted {
        let (plain, fork, vfork) = (e.label(), e.label(), e.label());
        let Self { family, exit, exec, clone3, .. } = *self;
        e.here(family)?;
        asm!(e; je(exit); cmp(ecx, (FORK - CLONE) as i32); jb(plain); je(fork););
        asm!(e; cmp(ecx, (EXECVE - CLONE) as i32); je(exec); jmp(vfork););
        e.here(plain)?;
        clone(e, CLONE, ways)?;
        e.here(fork)?;
        clone(e, FORK, ways)?;
        e.here(vfork)?;
        clone(e, VFORK, ways)?;
        e.here(clone3)?;
        clone(e, CLONE3, ways)?;
        e.here(exit)?;
        leaving(e, None)?;
        asm!(e; jmp(go););
        e.here(exec)?;
        exec_here(e, asking, ways.parent)
    }
}

/// Does the work that the number in eax requires besides counting. Calls that need more are made here and continue by
/// `ways`.
pub(super) fn by_number(e: &mut Emitter, asking: AskingSite, ways: Ways) -> Emitted {
    let (heeded, go) = (e.label(), e.label());
    asm!(e; cmp(eax, (NUMBERS - 1) as i32); jae(go); mov(ecx, eax); mov(r11, IMAGE + image::HEEDED););
    asm!(e; cmp(byte_ptr(r11 + rcx), 0); jne(heeded););
    e.here(go)?;
    e.cold(move |e| {
        let parts = Parts::new(e);
        e.here(heeded)?;
        stack_bounds::before_by_number(e)?;
        faults_served::before_by_number(e)?;
        parts.choose(e, go)?;
        // All others change the process's rights.
        asking.ask(e, Question::Identity)?;
        asm!(e; jmp(go););
        parts.of_memory_and_rights(e, asking, go, ways)?;
        parts.of_processes(e, asking, go, ways)
    });
    Ok(())
}

/// Makes an `execve` in our code, with its questions.
fn exec_here(e: &mut Emitter, asking: AskingSite, returned: CodeLabel) -> Emitted {
    asking.ask(e, Question::Exec)?;
    asm!(e; syscall(););
    exec_failed(e, asking.root, returned)
}

/// Tells the launcher that no new program came, and goes to `returned`.
pub(super) fn exec_failed(e: &mut Emitter, root: u64, returned: CodeLabel) -> Emitted {
    no_program::failed(e, returned)?;
    asm!(e; mov(r11, root););
    e.ask(Question::ExecFailed, returned)
}

/// Notes that the thread is about to end, and the processor time of its process: the last moment at which it can be
/// read. A thread that leaves others behind does not read it: the kernel adds up the time of all of them, which took
/// 30,000 threads 20 s as they ended. A handler may still jump away before the end. `number`: the call's; `None` if it
/// is in eax.
pub(super) fn leaving(e: &mut Emitter, number: Option<u32>) -> Emitted {
    let (quiet, ask, looked) = (e.label(), e.label(), e.label());
    if number.is_none_or(|n| n == EXIT_GROUP) {
        asm!(e; mov(rcx, IMAGE + image::WRITES_CODE); cmp(dword_ptr(rcx), 0); jne(ask););
        e.cold(move |e| {
            e.here(ask)?;
            if number.is_none() {
                asm!(e; cmp(eax, EXIT_GROUP as i32); jne(looked););
            }
            e.ask(Question::Ending, looked)
        });
    }
    e.here(looked)?;
    asm!(e; mov(gs32(slot::LEAVING), 1););
    asm!(e; mov(rcx, IMAGE + image::QUIET); cmp(dword_ptr(rcx), 0); jne(quiet););
    if number != Some(EXIT_GROUP) {
        let all = e.label();
        if number.is_none() {
            asm!(e; cmp(eax, EXIT_GROUP as i32); je(all););
        }
        asm!(e; mov(rcx, IMAGE + image::THREADS); cmp(dword_ptr(rcx), 0); jne(quiet););
        e.here(all)?;
    }
    asm!(e; mov(gs(slot::ASIDE), rdi); mov(gs(slot::ASIDE + 8), rsi); mov(gs(slot::ASIDE + 16), rax););
    asm!(e; mov(rsi, gs(slot::SELF)); add(rsi, slot::CPU as i32); mov(edi, CLOCK_PROCESS_CPUTIME_ID););
    asm!(e; mov(eax, CLOCK_GETTIME); syscall(););
    asm!(e; mov(rdi, gs(slot::ASIDE)); mov(rsi, gs(slot::ASIDE + 8)); mov(rax, gs(slot::ASIDE + 16)););
    e.here(quiet)?;
    Ok(())
}
