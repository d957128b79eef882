// Timers, tickers and sleeping goroutines: threads that wait in futex and epoll with a limit.
package main

import (
	"fmt"
	"sync"
	"time"
)

func main() {
	var wg sync.WaitGroup
	for g := 0; g < 8; g++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; i < 20; i++ {
				time.Sleep(time.Duration(g+1) * 300 * time.Microsecond)
			}
		}()
	}
	ticks := time.NewTicker(time.Millisecond)
	for i := 0; i < 30; i++ {
		<-ticks.C
	}
	ticks.Stop()
	fired := make(chan int, 50)
	for i := 0; i < 50; i++ {
		time.AfterFunc(time.Duration(i)*100*time.Microsecond, func() { fired <- i })
	}
	sum := 0
	for i := 0; i < 50; i++ {
		sum += <-fired
	}
	wg.Wait()
	fmt.Println(sum)
}
