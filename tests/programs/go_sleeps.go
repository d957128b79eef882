// Goroutines wait for work; main looks every 20 ms whether they are done.
package main

import (
	"fmt"
	"sync/atomic"
	"time"
)

var left atomic.Int32

func work(jobs chan int) {
	for range jobs {
		left.Add(-1)
	}
}

func settle() {
	for left.Load() > 0 {
		time.Sleep(20 * time.Millisecond) // the line that waits
	}
}

func main() {
	jobs := make(chan int, 100)
	for i := 0; i < 4; i++ {
		go work(jobs)
	}
	for i := 0; i < 40; i++ {
		left.Add(4)
		for j := 0; j < 4; j++ {
			jobs <- j
		}
		settle()
	}
	fmt.Println(left.Load())
}
