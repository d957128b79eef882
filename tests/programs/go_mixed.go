// Goroutines that pass work through channels, beside a file and a socket, some of which never give way by
// themselves: the run-time's own signal takes the processor from them.
package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
)

func main() {
	work, done := make(chan int), make(chan uint64)
	for g := 0; g < 4; g++ {
		go func() {
			for n := range work {
				x := uint64(n) + 1
				for i := 0; i < 500_000; i++ {
					x = x*6364136223846793005 + 1442695040888963407
				}
				done <- x
			}
		}()
	}
	var wg sync.WaitGroup
	wg.Add(2)
	go file(&wg)
	go socket(&wg)
	go func() {
		for i := 0; i < 60; i++ {
			work <- i
		}
		close(work)
	}()
	var sum uint64
	for i := 0; i < 60; i++ {
		sum ^= <-done
	}
	wg.Wait()
	fmt.Println(sum)
}

func file(wg *sync.WaitGroup) {
	defer wg.Done()
	dir, err := os.MkdirTemp("", "mixed")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for i := 0; i < 100; i++ {
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(name, make([]byte, 1000), 0o600); err != nil {
			panic(err)
		}
		if b, err := os.ReadFile(name); err != nil || len(b) != 1000 {
			panic(err)
		}
	}
}

func socket(wg *sync.WaitGroup) {
	defer wg.Done()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		b := make([]byte, 64)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			c.Write(b[:n])
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		panic(err)
	}
	defer c.Close()
	b := make([]byte, 64)
	for i := 0; i < 200; i++ {
		if _, err := c.Write(b[:32]); err != nil {
			panic(err)
		}
		if _, err := c.Read(b); err != nil {
			panic(err)
		}
	}
}
