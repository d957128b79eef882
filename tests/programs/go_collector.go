// Much garbage in many goroutines: the collector stops them by signals, also where they never give way.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"
)

type node struct {
	left, right *node
	rest        [4]uint64
}

func tree(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{left: tree(depth - 1), right: tree(depth - 1)}
}

func (n *node) count() int {
	if n.left == nil {
		return 1
	}
	return 1 + n.left.count() + n.right.count()
}

func main() {
	var wg sync.WaitGroup
	sums := make([]int, 6)
	for g := range sums {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; i < 12; i++ {
				sums[g] += tree(12).count()
				if i%4 == 0 {
					runtime.GC()
				}
			}
		}()
	}
	wg.Wait()
	// With nothing left to do its threads wait, however quick the processors were.
	time.Sleep(100 * time.Millisecond)
	fmt.Println(sums)
}
