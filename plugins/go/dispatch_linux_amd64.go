package systolltest

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// How it works. The kernel (Linux 5.11 and later) can send a thread SIGSYS instead of making its
// calls, unless they come from one range of code: Syscall User Dispatch. The handler, in assembler,
// counts the call, notes the return addresses that Go's frame pointers lead to, and has the thread go
// on in a stub in that range, which makes the call with the program's own registers, stack and signal
// mask and jumps back. Thread creation, signal returns and calls that wait come out as without it.
//
// Go's runtime blocks all signals while its handlers run and while it makes threads. A dispatched call
// that finds SIGSYS blocked ends the process, so SIGSYS is taken out of those masks.

const (
	sigsys           = 31
	sigsysBit        = 1 << (sigsys - 1)
	saFlags          = 0x4 | 0x04000000 | 0x08000000 // SA_SIGINFO, SA_RESTORER, SA_ONSTACK
	prctlDispatch    = 59
	stubSize         = 16
	stubCount        = 1024
	firstStub        = 2 * stubSize
	numbers          = 512
	keptStacks       = 4096
	wordsOfStack     = 14
	maximumOfThreads = 64
)

// What the handler writes; its offsets are in dispatch_amd64.s.
type log struct {
	counts     [numbers]uint64
	beyond     uint64
	stacks     uint64
	incomplete uint64
	first      [keptStacks][wordsOfStack]uint64
}

type thread struct {
	id       uint64
	selector uint64
	log      *log
}

type action struct{ handler, flags, restorer, mask uint64 }

// Read and written by the handler.
var (
	targets            [stubCount]uint64
	threads            [maximumOfThreads]thread
	previous           uint64
	textStart, textEnd uint64
)

var (
	mutex     sync.Mutex
	active    int
	installed action
	layout    = checkLayout()
	// Logs are large; a block's is the next one's.
	logs = sync.Pool{New: func() any { return new(log) }}
)

func stubsStart() uint64
func handlerStart() uint64
func textBounds() (start, end uint64)

// Where an assembler has not done as the code expects, nothing is counted.
func checkLayout() error {
	textStart, textEnd = textBounds()
	code := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&[]uint64{stubsStart()}[0]))), firstStub+stubCount*stubSize)
	for at := firstStub; at < len(code); at += stubSize {
		if code[at] != 0x0f || code[at+1] != 0x05 || code[at+9] != 0x41 || code[at+10] != 0xff || code[at+11] != 0xe3 {
			return errors.New("this build's code is laid out in another way than expected (a plugin or shared library?)")
		}
	}
	return nil
}

func changeAction(signal int, new, old *action) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(signal), uintptr(unsafe.Pointer(new)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
	return errno
}

// block counts the calling goroutine's thread from begin to end.
type block struct {
	thread *thread
	log    *log
}

// begin locks the goroutine to its thread and counts.
func begin() (*block, error) {
	if layout != nil {
		return nil, layout
	}
	runtime.LockOSThread()
	id := uint64(syscall.Gettid())
	b, err := enter(id)
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	start := uintptr(stubsStart())
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prctlDispatch, 1, start, firstStub+stubCount*stubSize, uintptr(unsafe.Pointer(&b.thread.selector)), 0)
	if errno != 0 {
		b.leave()
		runtime.UnlockOSThread()
		if errno == syscall.EINVAL {
			return nil, errors.New("this kernel has no Syscall User Dispatch (Linux 5.11 and later have it, gVisor and qemu-user do not)")
		}
		return nil, fmt.Errorf("prctl(PR_SET_SYSCALL_USER_DISPATCH) is refused here, most likely by a seccomp filter: %w", errno)
	}
	atomic.StoreUint64(&b.thread.selector, 1)
	return b, nil
}

func enter(id uint64) (*block, error) {
	mutex.Lock()
	defer mutex.Unlock()
	var free *thread
	for i := range threads {
		if threads[i].id == id {
			return nil, errors.New("this goroutine is in a counted block already")
		}
		if free == nil && threads[i].id == 0 {
			free = &threads[i]
		}
	}
	if free == nil {
		return nil, fmt.Errorf("more than %d threads count at the same time", maximumOfThreads)
	}
	if active == 0 {
		if errno := changeAction(sigsys, nil, &installed); errno != 0 {
			return nil, fmt.Errorf("rt_sigaction: %w", errno)
		}
		if installed.handler <= 1 {
			return nil, errors.New("Go's runtime handles no SIGSYS here")
		}
		previous = installed.handler
		ours := action{handlerStart(), saFlags, stubsStart(), ^uint64(0)}
		if errno := changeAction(sigsys, &ours, nil); errno != 0 {
			return nil, fmt.Errorf("rt_sigaction: %w", errno)
		}
	}
	unblockInHandlers()
	active++
	l := logs.Get().(*log)
	l.counts, l.beyond, l.stacks, l.incomplete = [numbers]uint64{}, 0, 0, 0
	free.log = l
	atomic.StoreUint64(&free.selector, 0)
	atomic.StoreUint64(&free.id, id)
	return &block{free, l}, nil
}

// unblockInHandlers takes SIGSYS out of what handlers block while they run: they make calls too.
func unblockInHandlers() {
	for signal := 1; signal <= 64; signal++ {
		var now action
		if signal == sigsys || changeAction(signal, nil, &now) != 0 || now.handler <= 1 || now.mask&sigsysBit == 0 {
			continue
		}
		now.mask &^= sigsysBit
		changeAction(signal, &now, nil)
	}
}

func (b *block) leave() {
	mutex.Lock()
	defer mutex.Unlock()
	b.thread.log = nil
	atomic.StoreUint64(&b.thread.id, 0)
	if active--; active == 0 {
		changeAction(sigsys, &installed, nil)
	}
}

// end stops counting. It runs in the goroutine, and so in the thread, that began.
func (b *block) end() *Counts {
	atomic.StoreUint64(&b.thread.selector, 0)
	syscall.RawSyscall6(syscall.SYS_PRCTL, prctlDispatch, 0, 0, 0, 0, 0)
	b.leave()
	counts := b.log.counted()
	logs.Put(b.log)
	runtime.UnlockOSThread()
	return counts
}

func (l *log) counted() *Counts {
	counts := &Counts{byNumber: map[int]int{}}
	for number, calls := range l.counts {
		if calls != 0 {
			counts.byNumber[number] = int(calls)
		}
	}
	if l.beyond != 0 {
		counts.byNumber[numbers] = int(l.beyond)
	}
	counts.Incomplete = [...]string{
		"",
		"more than 1024 places make calls; what came later was not counted",
		"the block made a 32-bit call, which can't be counted; what came later was not",
		"the block waited with SIGSYS blocked; what came later was not counted",
	}[l.incomplete]
	for _, words := range l.first[:min(l.stacks, keptStacks)] {
		stack := stack{number: int(words[0])}
		for at, word := range words[1:] {
			if word == 0 {
				break
			}
			stack.addresses[at] = uintptr(word)
		}
		counts.stacks = append(counts.stacks, stack)
	}
	return counts
}
