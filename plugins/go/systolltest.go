// Package systolltest counts the system calls of a block of code in tests, exactly and with callers.
//
//	func TestLoad(t *testing.T) {
//		systolltest.Limit(t, systolltest.Limits{"openat": 1, "total": 12}, func() {
//			load("app.toml")
//		})
//	}
//
// Counted is what the block's goroutine calls, in the thread that it is locked to meanwhile; goroutines
// that it starts run in other threads and are not counted. It needs neither cgo nor a launcher nor
// privileges, but Linux 5.11 or later on x86-64. Where calls can't be counted, the block runs, and the
// test is skipped with the reason.
package systolltest

import (
	"fmt"
	"os"
	"reflect"
	"runtime"
	"sort"
	"strings"
	"testing"
)

// Counts are the system calls of one block.
type Counts struct {
	// Incomplete says why the counts are too low; empty where they are exact.
	Incomplete string

	byNumber map[int]int
	stacks   []stack
}

type stack struct {
	number    int
	addresses [wordsOfStack - 1]uintptr
}

// Caller is where calls came from.
type Caller struct {
	// Call is the system call's name.
	Call string
	// Calls is how often it was made from there, among the block's first 4096 calls.
	Calls int
	// Frames are functions with file and line, innermost first.
	Frames []string
}

// Limits are the most calls that a block may make, by name; "total" is all of them.
type Limits map[string]int

// Calls runs f and counts the calls that it makes in its goroutine. The error says why they can't be
// counted; f has run all the same.
func Calls(f func()) (*Counts, error) {
	block, err := begin()
	if err != nil {
		f()
		return nil, err
	}
	var counts *Counts
	func() {
		// A panic, or t.FailNow, leaves the block too.
		defer func() { counts = block.end() }()
		f()
	}()
	return counts, nil
}

// Limit runs f and fails the test where it makes more calls than that. Where calls can't be counted,
// it skips the test after f; with SYSTOLL_TEST_STRICT=1 in the environment it fails.
func Limit(t testing.TB, limits Limits, f func()) *Counts {
	t.Helper()
	for name := range limits {
		if _, known := numberOf[name]; !known && name != "total" {
			t.Fatalf("no system call is named %q", name)
		}
	}
	counts, err := Calls(f)
	if err != nil {
		if os.Getenv("SYSTOLL_TEST_STRICT") == "1" {
			t.Fatalf("system calls can't be counted: %v", err)
		}
		t.Skipf("system calls can't be counted: %v", err)
	}
	var broken []string
	over := map[string]bool{}
	for name, limit := range limits {
		if calls := counts.Of(name); calls > limit {
			over[name] = true
			for _, call := range madeAs[name] {
				over[call] = true
			}
			broken = append(broken, fmt.Sprintf("%s: %d calls, %d is the limit", name, calls, limit))
		}
	}
	if len(broken) > 0 || counts.Incomplete != "" {
		sort.Strings(broken)
		told := func(call string) bool { return over[call] || over["total"] }
		t.Errorf("%s\n%s", strings.Join(broken, "\n"), counts.told(told))
	}
	return counts
}

// madeAs holds what libraries make today in place of older calls: whoever limits open means openat.
var madeAs = map[string][]string{
	"open":         {"openat", "openat2"},
	"creat":        {"open", "openat"},
	"stat":         {"newfstatat", "statx"},
	"lstat":        {"newfstatat", "statx"},
	"fork":         {"clone", "clone3"},
	"getdents":     {"getdents64"},
	"select":       {"pselect6"},
	"nanosleep":    {"clock_nanosleep"},
	"getrlimit":    {"prlimit64"},
	"setrlimit":    {"prlimit64"},
	"eventfd":      {"eventfd2"},
	"signalfd":     {"signalfd4"},
	"epoll_create": {"epoll_create1"},
	"inotify_init": {"inotify_init1"},
}

// Of is how often the call of this name was made. "total" is all of them but rt_sigreturn: the
// runtime's signals come when they come. The name of an older call stands as well for what libraries make
// of it today: "open" for openat; ByName tells them apart.
func (c *Counts) Of(name string) int {
	if name == "total" {
		total := -c.byNumber[numberOf["rt_sigreturn"]]
		for _, calls := range c.byNumber {
			total += calls
		}
		return total
	}
	calls := 0
	for _, call := range append([]string{name}, madeAs[name]...) {
		if number, known := numberOf[call]; known {
			calls += c.byNumber[number]
		}
	}
	return calls
}

// ByName has each call that was made, with its count.
func (c *Counts) ByName() map[string]int {
	named := map[string]int{}
	for number, calls := range c.byNumber {
		named[nameOf(number)] += calls
	}
	return named
}

// Callers tells who made the block's first 4096 calls, most first.
func (c *Counts) Callers() []Caller {
	merged := map[stack]int{}
	for _, stack := range c.stacks {
		merged[stack]++
	}
	callers := make([]Caller, 0, len(merged))
	for stack, calls := range merged {
		callers = append(callers, Caller{nameOf(stack.number), calls, stack.frames()})
	}
	sort.Slice(callers, func(a, b int) bool {
		if callers[a].Calls != callers[b].Calls {
			return callers[a].Calls > callers[b].Calls
		}
		return callers[a].Call+strings.Join(callers[a].Frames, "") < callers[b].Call+strings.Join(callers[b].Frames, "")
	})
	return callers
}

func (s stack) frames() []string {
	var names []string
	for _, address := range s.addresses {
		// A word that is no return address, as the second may be, is in no function.
		if address == 0 || runtime.FuncForPC(address) == nil {
			continue
		}
		frame, _ := runtime.CallersFrames([]uintptr{address}).Next()
		if isOurs(frame.Function) {
			break
		}
		names = append(names, fmt.Sprintf("%s (%s:%d)", frame.Function, frame.File, frame.Line))
		// Of functions inlined in one another the innermost and the outermost can be told.
		outer := runtime.FuncForPC(runtime.FuncForPC(address).Entry())
		if outer == nil || outer.Name() == frame.Function {
			continue
		}
		if isOurs(outer.Name()) {
			break
		}
		file, _ := outer.FileLine(outer.Entry())
		names = append(names, fmt.Sprintf("%s (%s)", outer.Name(), file))
	}
	return names
}

// isOurs tells what runs the block.
func isOurs(function string) bool {
	return function == ownName || strings.HasPrefix(function, ownName+".func")
}

var ownName = runtime.FuncForPC(reflect.ValueOf(Calls).Pointer()).Name()

// String has a line for each caller.
func (c *Counts) String() string {
	return c.told(func(string) bool { return true })
}

// told has a line for each caller of these calls.
func (c *Counts) told(these func(call string) bool) string {
	var text strings.Builder
	for _, caller := range c.Callers() {
		if !these(caller.Call) {
			continue
		}
		fmt.Fprintf(&text, "  %d x %s: %s\n", caller.Calls, caller.Call, strings.Join(caller.Frames, " < "))
	}
	if c.Incomplete != "" {
		fmt.Fprintln(&text, "  "+c.Incomplete)
	}
	return text.String()
}

func nameOf(number int) string {
	if name, known := names[number]; known {
		return name
	}
	return "unknown"
}

var numberOf = func() map[string]int {
	numbers := map[string]int{}
	for number, name := range names {
		numbers[name] = number
	}
	return numbers
}()
