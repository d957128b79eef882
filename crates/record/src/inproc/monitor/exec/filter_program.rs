//! Follows a classic BPF program, as seccomp filters are, through a system call of which some arguments are unknown.

use libc::sock_filter;
use std::collections::HashSet;

/// Instructions that are followed for one call, at most. A filter with more is taken to forbid the call.
const MOST_STEPS: usize = 1 << 16;
/// AUDIT_ARCH_X86_64 of include/uapi/linux/audit.h.
const ARCH: u32 = 0xc000_003e;
/// Size of `struct seccomp_data`, bytes.
const DATA: u32 = 64;
/// Number of words of scratch memory (BPF_MEMWORDS).
const WORDS: usize = 16;

/// A system call as far as it is known; `None` is an argument that may be anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) number: u32,
    pub(crate) args: [Option<u64>; 6],
}

impl Call {
    /// Returns the word at an offset of `struct seccomp_data`; `None` if it is unknown.
    fn word(&self, offset: u32) -> Option<u32> {
        match offset {
            0 => Some(self.number),
            4 => Some(ARCH),
            // Address of the instruction.
            8 | 12 => None,
            _ => {
                let at = (offset - 16) as usize;
                let value = self.args.get(at / 8).copied().flatten()?;
                Some(if at.is_multiple_of(8) { value as u32 } else { (value >> 32) as u32 })
            }
        }
    }
}

/// The machine's state before an instruction; `None` is an unknown word.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    at: usize,
    a: Option<u32>,
    x: Option<u32>,
    memory: [Option<u32>; WORDS],
}

/// The result of one instruction.
enum Step {
    Next(State),
    /// The condition is not known: both ways are possible.
    Either(State, State),
    Returns(Option<u32>),
    /// No valid filter has such an instruction.
    Unknown,
}

/// Returns true if the filter allows the call whatever its unknown arguments are.
pub(crate) fn allows(filter: &[sock_filter], call: &Call) -> bool {
    let mut todo = vec![State { at: 0, a: Some(0), x: Some(0), memory: [None; WORDS] }];
    let (mut seen, mut steps) = (HashSet::new(), 0);
    while let Some(state) = todo.pop() {
        steps += 1;
        if steps > MOST_STEPS {
            return false;
        }
        match step(filter, call, state) {
            Step::Next(next) => todo.push(next),
            // Branches meet again: each state is followed once.
            Step::Either(one, other) => {
                todo.extend([one, other].into_iter().filter(|state| seen.insert(state.clone())))
            }
            Step::Returns(Some(value)) if value & libc::SECCOMP_RET_ACTION_FULL == libc::SECCOMP_RET_ALLOW => {}
            Step::Returns(_) | Step::Unknown => return false,
        }
    }
    true
}

fn step(filter: &[sock_filter], call: &Call, mut state: State) -> Step {
    let Some(instruction) = filter.get(state.at) else { return Step::Unknown };
    let (code, k) = (u32::from(instruction.code), instruction.k);
    state.at += 1;
    match code & 7 {
        libc::BPF_LD | libc::BPF_LDX => {
            let value = match code & 0xe0 {
                libc::BPF_ABS if k.is_multiple_of(4) && k < DATA => call.word(k),
                libc::BPF_IMM => Some(k),
                libc::BPF_LEN => Some(DATA),
                libc::BPF_MEM if (k as usize) < WORDS => state.memory.get(k as usize).copied().flatten(),
                _ => return Step::Unknown,
            };
            *(if code & 7 == libc::BPF_LD { &mut state.a } else { &mut state.x }) = value;
        }
        libc::BPF_ST | libc::BPF_STX => {
            let value = if code & 7 == libc::BPF_ST { state.a } else { state.x };
            let Some(word) = state.memory.get_mut(k as usize) else { return Step::Unknown };
            *word = value;
        }
        libc::BPF_ALU => state.a = computed(code & 0xf0, state.a, if code & 8 == 0 { Some(k) } else { state.x }),
        libc::BPF_JMP => return jump(code, instruction, state),
        libc::BPF_RET => return Step::Returns(if code & 0x18 == libc::BPF_A { state.a } else { Some(k) }),
        // BPF_MISC
        _ if code & 0xf8 == libc::BPF_TXA => state.a = state.x,
        _ => state.x = state.a,
    }
    Step::Next(state)
}

fn jump(code: u32, instruction: &sock_filter, state: State) -> Step {
    let k = instruction.k;
    let ahead = |distance: usize| State { at: state.at.saturating_add(distance), ..state.clone() };
    let holds = match (code & 0xf0, state.a, if code & 8 == 0 { Some(k) } else { state.x }) {
        (libc::BPF_JA, ..) => return Step::Next(ahead(k as usize)),
        (libc::BPF_JEQ, Some(a), Some(b)) => Some(a == b),
        (libc::BPF_JGT, Some(a), Some(b)) => Some(a > b),
        (libc::BPF_JGE, Some(a), Some(b)) => Some(a >= b),
        (libc::BPF_JSET, Some(a), Some(b)) => Some(a & b != 0),
        (libc::BPF_JEQ | libc::BPF_JGT | libc::BPF_JGE | libc::BPF_JSET, ..) => None,
        _ => return Step::Unknown,
    };
    let (yes, no) = (ahead(instruction.jt.into()), ahead(instruction.jf.into()));
    match holds {
        Some(true) => Step::Next(yes),
        Some(false) => Step::Next(no),
        None => Step::Either(yes, no),
    }
}

/// Returns the result of an operation; `None` if it is unknown.
fn computed(operation: u32, a: Option<u32>, b: Option<u32>) -> Option<u32> {
    let (a, b) = (a?, if operation == libc::BPF_NEG { Some(0) } else { b }?);
    match operation {
        libc::BPF_ADD => Some(a.wrapping_add(b)),
        libc::BPF_SUB => Some(a.wrapping_sub(b)),
        libc::BPF_MUL => Some(a.wrapping_mul(b)),
        libc::BPF_DIV => a.checked_div(b),
        libc::BPF_OR => Some(a | b),
        libc::BPF_AND => Some(a & b),
        libc::BPF_XOR => Some(a ^ b),
        libc::BPF_LSH => a.checked_shl(b),
        libc::BPF_RSH => a.checked_shr(b),
        libc::BPF_NEG => Some(a.wrapping_neg()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

    fn line(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
        sock_filter { code, jt, jf, k }
    }

    fn if_equal(jt: u8, jf: u8, k: u32) -> sock_filter {
        line((libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, jt, jf, k)
    }

    fn call(number: u32, first: Option<u64>) -> Call {
        Call { number, args: [first, None, None, None, None, None] }
    }

    #[test]
    fn a_list_of_numbers_allows_those() {
        let refuse = line(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | 1);
        let filter = [line(LOAD, 0, 0, 0), if_equal(1, 0, 7), if_equal(0, 1, 9), line(RETURN, 0, 0, ALLOW), refuse];
        let may = |number| allows(&filter, &call(number, None));
        assert!(may(7) && may(9) && !may(8));
    }

    #[test]
    fn a_condition_on_an_unknown_argument_must_hold_either_way() {
        let kill = line(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS);
        let filter = [line(LOAD, 0, 0, 16), if_equal(1, 0, 40), line(RETURN, 0, 0, ALLOW), kill];
        assert!(allows(&filter, &call(1, Some(1))) && !allows(&filter, &call(1, Some(40))));
        assert!(!allows(&filter, &call(1, None)));
        let same = [line(LOAD, 0, 0, 16), if_equal(0, 0, 40), line(RETURN, 0, 0, ALLOW)];
        assert!(allows(&same, &call(1, None)));
        // The upper half of an argument is a word of its own.
        let upper = [line(LOAD, 0, 0, 20), if_equal(0, 1, 3), line(RETURN, 0, 0, ALLOW), kill];
        assert!(allows(&upper, &call(1, Some(3 << 32))) && !allows(&upper, &call(1, Some(3))));
    }

    #[test]
    fn words_are_computed_as_the_kernel_does() {
        let kill = line(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS);
        let (tax, store) = (line((libc::BPF_MISC | libc::BPF_TAX) as u16, 0, 0, 0), line(libc::BPF_ST as u16, 0, 0, 2));
        let and = line((libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16, 0, 0, 0x0f);
        let add_x = line((libc::BPF_ALU | libc::BPF_ADD | libc::BPF_X) as u16, 0, 0, 0);
        let load = line((libc::BPF_LD | libc::BPF_MEM) as u16, 0, 0, 2);
        let filter =
            [line(LOAD, 0, 0, 16), and, store, tax, load, add_x, if_equal(0, 1, 14), line(RETURN, 0, 0, ALLOW), kill];
        assert!(allows(&filter, &call(1, Some(0xf7))) && !allows(&filter, &call(1, Some(0xf8))));
    }

    #[test]
    fn what_is_no_filter_allows_nothing() {
        let any = call(1, None);
        assert!(!allows(&[], &any) && !allows(&[line(LOAD, 0, 0, 64)], &any) && !allows(&[line(LOAD, 0, 0, 0)], &any));
        assert!(!allows(&[line(RETURN, 0, 0, libc::SECCOMP_RET_LOG)], &any));
        // Each branch on an unknown word doubles the states unless they meet.
        let mut long: Vec<sock_filter> = (0..200).flat_map(|k| [line(LOAD, 0, 0, 16), if_equal(0, 0, k)]).collect();
        long.push(line(RETURN, 0, 0, ALLOW));
        assert!(allows(&long, &any));
    }
}
