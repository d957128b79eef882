// As calls.c: names in Go's ways.
package main

import (
	"fmt"
	"os"
	"sort"
	"sync"
	"syscall"
)

var sink int

type shape interface{ area() int }
type square struct{ side int }

//go:noinline
func (s *square) area() int {
	return s.side + os.Getppid() //= getppid os.Getppid main.(*square).area
}

//go:noinline
func listen(s shape) int { return s.area() + sink }

func inlined() int {
	return syscall.Getuid() //= getuid syscall.Getuid main.inlined
}

//go:noinline
func around() int { return inlined() + 1 }

//go:noinline
func emit(f *os.File) {
	fmt.Fprintf(f, "%d", sink) //+ write fmt.Fprintf main.emit
}

//go:noinline
func direct() int {
	a, _, _ := syscall.RawSyscall(syscall.SYS_GETPRIORITY, 0, 0, 0) //= getpriority syscall.RawSyscall main.direct
	return int(a)
}

//go:noinline
func generic[T int | int64](v T) T {
	return v + T(syscall.Getgid()) //= getgid syscall.Getgid main.generic[...] | main.generic[go.shape.int]
}

//go:noinline
func sorted(all []int) {
	sort.Slice(all, func(i, j int) bool {
		sink += syscall.Geteuid() //= geteuid syscall.Geteuid main.sorted.func1
		return all[i] < all[j]
	})
}

func init() {
	sink += syscall.Getpgrp() //= getpgid syscall.Getpgrp main.init.0
}

func main() {
	sink += listen(&square{1}) + around() + direct() + generic(1)
	sorted([]int{2, 1})
	var wait sync.WaitGroup
	wait.Add(1)
	go func() {
		defer wait.Done()
		sink += syscall.Getegid() //= getegid syscall.Getegid main.main.func1
	}()
	wait.Wait()
	func() {
		defer func() {
			sink++
		}()
		sink += syscall.Getpagesize()
		f, err := os.OpenFile("/dev/null", os.O_WRONLY, 0) //+ openat os.OpenFile main.main.func2
		if err != nil {
			panic(err)
		}
		emit(f)
	}()
	if _, err := syscall.Getpgid(0); err != nil { //= getpgid syscall.Getpgid main.main
		panic(err)
	}
}
